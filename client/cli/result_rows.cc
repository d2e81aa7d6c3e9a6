#include "client/cli/result_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/double_text.h"
#include "client/spec_text.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

using nlohmann::ordered_json;

ordered_json NumberOrNull(double value, bool known = true) {
  return known && std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json IndexOrNull(int64_t index, bool known) {
  return known ? ordered_json(index) : ordered_json(nullptr);
}

ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char byte : text) {
    if (byte == '"') quoted += '"';
    quoted += byte;
  }
  return quoted + "\"";
}

std::string CsvText(const ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return client::DoubleText(value.get<double>());
  return value.dump();
}

}  // namespace

const std::vector<std::string>& CellKeys() {
  static const std::vector<std::string>& keys = *new std::vector<std::string>{
      "checkpoint",       "task",    "hops",     "added_tokens", "seed",   "items",
      "items_failed",     "correct", "accuracy", "stderr",       "ci_low", "ci_high",
      "items_unlabelled", "tokens"};
  return keys;
}

const std::vector<std::string>& HeadKeys() {
  static const std::vector<std::string>& keys = *new std::vector<std::string>{
      "checkpoint", "task",   "hops",  "added_tokens", "seed", "scorer",
      "params",     "metric", "step",  "layer",        "head", "plane",
      "mean",       "stderr", "items", "min",          "max",  "tokens"};
  return keys;
}

ordered_json CellRow(const v1::CellResult& result) {
  const v1::Cell& cell = result.cell();
  ordered_json row = ordered_json::object();
  row["checkpoint"] = cell.checkpoint();
  row["task"] = cell.task();
  row["hops"] = cell.hops();
  row["added_tokens"] = cell.added_tokens();
  row["seed"] = cell.seed();
  row["items"] = result.items();
  row["items_failed"] = result.items_failed();
  row["correct"] = result.correct();
  row["accuracy"] = NumberOrNull(result.accuracy(), result.has_accuracy());
  row["stderr"] = NumberOrNull(result.standard_error(), result.has_standard_error());
  row["ci_low"] = NumberOrNull(result.ci_low(), result.has_ci_low());
  row["ci_high"] = NumberOrNull(result.ci_high(), result.has_ci_high());
  row["items_unlabelled"] = result.items_unlabelled();
  row["tokens"] = TextOrNull(cell.tokens_digest());
  return row;
}

absl::Status ForEachHeadRow(const v1::HeadScores& scores,
                            const std::function<absl::Status(const ordered_json&)>& on_row) {
  const int64_t steps = std::max<int64_t>(scores.steps(), 1);
  // A metric of the whole model has neither.
  const bool per_head = scores.layers() > 0;
  const int64_t layers = per_head ? scores.layers() : 1;
  const int64_t heads = per_head ? scores.heads() : 1;
  const int64_t planes = std::max<int64_t>(scores.planes(), 1);
  const int64_t size = scores.mean_size();
  // Products of 32-bit sizes, two at a time, fit.
  const bool fits = heads > 0 && steps * layers <= size && heads * planes <= size &&
                    steps * layers * heads * planes == size;
  const bool has_extremes = scores.min_size() > 0;
  if (!fits || scores.standard_error_size() != size || scores.items_size() != size ||
      scores.min_size() != scores.max_size() || (has_extremes && scores.min_size() != size)) {
    return common::MakeError(
        absl::StatusCode::kDataLoss, "RESULTS_MALFORMED",
        absl::StrCat("the server sent ", size, " means, ", scores.standard_error_size(),
                     " standard errors and ", scores.items_size(), " counts of ", scores.scorer(),
                     ".", scores.metric(), " for ", steps, " x ", layers, " x ", heads, " x ",
                     planes, " values"));
  }
  const v1::Cell& cell = scores.cell();
  ordered_json row = ordered_json::object();
  row["checkpoint"] = cell.checkpoint();
  row["task"] = cell.task();
  row["hops"] = cell.hops();
  row["added_tokens"] = cell.added_tokens();
  row["seed"] = cell.seed();
  row["scorer"] = scores.scorer();
  row["params"] = client::ParamsToJson(scores.params());
  row["metric"] = scores.metric();
  for (int64_t at = 0; at < size; ++at) {
    const int index = static_cast<int>(at);
    row["step"] = IndexOrNull(at / (layers * heads * planes), scores.steps() > 0);
    row["layer"] = IndexOrNull(at / (heads * planes) % layers, per_head);
    row["head"] = IndexOrNull(at / planes % heads, per_head);
    row["plane"] = IndexOrNull(at % planes, scores.planes() > 0);
    row["mean"] = NumberOrNull(scores.mean(index));
    row["stderr"] = NumberOrNull(scores.standard_error(index));
    row["items"] = scores.items(index);
    if (has_extremes) {
      row["min"] = NumberOrNull(scores.min(index));
      row["max"] = NumberOrNull(scores.max(index));
    }
    row["tokens"] = TextOrNull(cell.tokens_digest());
    HOPSCOPE_RETURN_IF_ERROR(on_row(row));
  }
  return absl::OkStatus();
}

std::string CsvHeader(const std::vector<std::string>& keys) {
  std::string line;
  for (const std::string& key : keys) absl::StrAppend(&line, line.empty() ? "" : ",", key);
  return line + "\n";
}

std::string CsvLine(const std::vector<std::string>& keys, const ordered_json& row) {
  std::string line;
  bool first = true;
  for (const std::string& key : keys) {
    const auto value = row.find(key);
    absl::StrAppend(&line, first ? "" : ",", value == row.end() ? "" : CsvField(CsvText(*value)));
    first = false;
  }
  return line + "\n";
}

}  // namespace hopscope::cli
