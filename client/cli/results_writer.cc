#include "client/cli/results_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/result_rows.h"
#include "client/job_state.h"
#include "client/spec_text.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

using nlohmann::ordered_json;

std::string Dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

absl::Status FileError(const std::string& path, int error) {
  return common::MakeError(absl::ErrnoToStatusCode(error), "OUTPUT_NOT_WRITABLE",
                           absl::StrCat(path, ": ", std::strerror(error)), {{"value", path}});
}

ordered_json TimeJson(bool known, const google::protobuf::Timestamp& time) {
  if (!known) return nullptr;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ",
                          absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
                          absl::UTCTimeZone());
}

ordered_json FailureJson(bool known, const v1::Failure& failure) {
  if (!known) return nullptr;
  ordered_json json = ordered_json::object();
  json["reason"] = failure.reason();
  json["message"] = failure.message();
  return json;
}

ordered_json TotalsJson(const v1::JobTotals& totals) {
  ordered_json json = ordered_json::object();
  json["cells"] = totals.cells();
  json["cells_completed"] = totals.cells_completed();
  json["cells_failed"] = totals.cells_failed();
  json["units"] = totals.units();
  json["units_completed"] = totals.units_completed();
  json["units_failed"] = totals.units_failed();
  json["items"] = totals.items();
  json["items_completed"] = totals.items_completed();
  json["items_failed"] = totals.items_failed();
  return json;
}

template <typename List>
ordered_json ListJson(const List& values) {
  ordered_json list = ordered_json::array();
  for (const auto& value : values) list.push_back(value);
  return list;
}

// One object a line between brackets.
void WriteRows(std::ostream& stream, const std::vector<std::string>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) stream << (i == 0 ? "\n  " : ",\n  ") << rows[i];
  if (!rows.empty()) stream << "\n";
}

// Makes results.json; the rows of heads wait in a file without a name until those of cells are
// complete.
class ResultsDocument {
 public:
  absl::Status AddCell(const v1::CellResult& result, const ordered_json& row) {
    cells_.push_back(Dump(row));
    if (result.state() == v1::CellResult::STATE_FAILED) {
      ordered_json failed = ordered_json::object();
      for (const char* key : {"checkpoint", "task", "hops", "added_tokens", "seed"})
        failed[key] = row[key];
      failed["reason"] = result.failure().reason();
      failed["message"] = result.failure().message();
      failed_cells_.push_back(std::move(failed));
    }
    return absl::OkStatus();
  }

  absl::Status AddHead(const ordered_json& row) {
    if (heads_ == nullptr) {
      heads_.reset(std::tmpfile());
      if (heads_ == nullptr) return FileError("a temporary file", errno);
    }
    const std::string line = absl::StrCat(head_count_++ == 0 ? "\n  " : ",\n  ", Dump(row));
    if (std::fwrite(line.data(), 1, line.size(), heads_.get()) != line.size()) {
      return FileError("a temporary file", errno);
    }
    return absl::OkStatus();
  }

  absl::Status Write(const ResultsHeader& header, std::ostream& stream) {
    const v1::EvalJob& job = header.job;
    ordered_json job_json = ordered_json::object();
    job_json["name"] = job.name();
    job_json["state"] = client::StateName(job.state());
    job_json["create_time"] = TimeJson(job.has_create_time(), job.create_time());
    job_json["start_time"] = TimeJson(job.has_start_time(), job.start_time());
    job_json["end_time"] = TimeJson(job.has_end_time(), job.end_time());
    job_json["totals"] = TotalsJson(job.totals());
    job_json["warnings"] = ListJson(job.warnings());
    job_json["failure"] = FailureJson(job.has_failure(), job.failure());
    job_json["failed_cells"] = failed_cells_;
    ordered_json versions = ordered_json::object();
    versions["client"] = header.client_version;
    versions["server"] =
        header.server_version.empty() ? ordered_json(nullptr) : ordered_json(header.server_version);
    versions["worker_kinds"] = ListJson(job.worker_kinds());
    ordered_json checkpoints = ordered_json::array();
    for (const v1::CheckpointRef& checkpoint : job.checkpoints()) {
      ordered_json ref = ordered_json::object();
      ref["name"] = checkpoint.name();
      ref["digest"] = checkpoint.digest();
      checkpoints.push_back(std::move(ref));
    }
    stream << "{\n\"job\": " << Dump(job_json)
           << ",\n\"spec\": " << Dump(client::SpecToJson(job.spec()))
           << ",\n\"versions\": " << Dump(versions) << ",\n\"checkpoints\": " << Dump(checkpoints)
           << ",\n\"cells\": [";
    WriteRows(stream, cells_);
    stream << "],\n\"heads\": [";
    if (heads_ != nullptr) {
      std::rewind(heads_.get());
      char buffer[1 << 15];
      while (const size_t got = std::fread(buffer, 1, sizeof(buffer), heads_.get())) {
        stream.write(buffer, static_cast<std::streamsize>(got));
      }
      if (std::ferror(heads_.get()) != 0) return FileError("a temporary file", EIO);
      stream << "\n";
    }
    stream << "]\n}\n";
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> cells_;
  ordered_json failed_cells_ = ordered_json::array();
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> heads_{nullptr, &std::fclose};
  int64_t head_count_ = 0;
};

class StreamWriter : public ResultsWriter {
 public:
  explicit StreamWriter(std::ostream* stream) : stream_(*stream) {}

  absl::Status Add(const v1::ListEvalResultsResponse& page) override {
    for (const v1::CellResult& cell : page.cells()) {
      HOPSCOPE_RETURN_IF_ERROR(document_.AddCell(cell, CellRow(cell)));
    }
    for (const v1::HeadScores& heads : page.heads()) {
      HOPSCOPE_RETURN_IF_ERROR(ForEachHeadRow(
          heads, [this](const ordered_json& row) { return document_.AddHead(row); }));
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const ResultsHeader& header) override {
    return document_.Write(header, stream_);
  }

 private:
  std::ostream& stream_;
  ResultsDocument document_;
};

// A file that has its name only once it is complete.
class PendingFile {
 public:
  PendingFile(const std::string& folder, const std::string& name)
      : path_(absl::StrCat(folder, "/", name)),
        temporary_(absl::StrCat(folder, "/.", name, ".", getpid(), ".tmp")) {
    errno = 0;
    stream_.open(temporary_, std::ios::binary | std::ios::trunc);
    if (!stream_) error_ = FileError(temporary_, errno != 0 ? errno : EIO);
  }
  ~PendingFile() {
    if (!renamed_) std::remove(temporary_.c_str());
  }

  std::ofstream& stream() { return stream_; }

  absl::Status Check() {
    if (error_.ok() && !stream_) error_ = FileError(temporary_, errno != 0 ? errno : EIO);
    return error_;
  }

  absl::Status Close() {
    errno = 0;
    stream_.close();
    return Check();
  }

  absl::Status Rename() {
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    if (error) return FileError(path_, error.value());
    renamed_ = true;
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string temporary_;
  std::ofstream stream_;
  absl::Status error_;
  bool renamed_ = false;
};

class FolderWriter : public ResultsWriter {
 public:
  explicit FolderWriter(const std::string& folder)
      : json_(folder, "results.json"), cells_(folder, "cells.csv"), heads_(folder, "heads.csv") {
    cells_.stream() << CsvHeader(CellKeys());
    heads_.stream() << CsvHeader(HeadKeys());
  }

  absl::Status Check() {
    for (PendingFile* file : {&json_, &cells_, &heads_}) HOPSCOPE_RETURN_IF_ERROR(file->Check());
    return absl::OkStatus();
  }

  absl::Status Add(const v1::ListEvalResultsResponse& page) override {
    for (const v1::CellResult& cell : page.cells()) {
      const ordered_json row = CellRow(cell);
      cells_.stream() << CsvLine(CellKeys(), row);
      HOPSCOPE_RETURN_IF_ERROR(document_.AddCell(cell, row));
    }
    for (const v1::HeadScores& heads : page.heads()) {
      HOPSCOPE_RETURN_IF_ERROR(ForEachHeadRow(heads, [this](const ordered_json& row) {
        heads_.stream() << CsvLine(HeadKeys(), row);
        return document_.AddHead(row);
      }));
    }
    return Check();
  }

  absl::Status Finish(const ResultsHeader& header) override {
    HOPSCOPE_RETURN_IF_ERROR(document_.Write(header, json_.stream()));
    for (PendingFile* file : {&json_, &cells_, &heads_}) HOPSCOPE_RETURN_IF_ERROR(file->Close());
    // results.json last: where it is, the others are.
    for (PendingFile* file : {&cells_, &heads_, &json_}) HOPSCOPE_RETURN_IF_ERROR(file->Rename());
    return absl::OkStatus();
  }

 private:
  PendingFile json_;
  PendingFile cells_;
  PendingFile heads_;
  ResultsDocument document_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ResultsWriter>> WriteResultsTo(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError(folder, error.value());
  auto writer = std::make_unique<FolderWriter>(folder);
  HOPSCOPE_RETURN_IF_ERROR(writer->Check());
  return writer;
}

std::unique_ptr<ResultsWriter> WriteResultsTo(std::ostream* stream) {
  return std::make_unique<StreamWriter>(stream);
}

}  // namespace hopscope::cli
