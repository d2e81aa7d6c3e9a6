// hopscope capabilities: what a server can evaluate.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/command.h"
#include "client/cli/json_text.h"
#include "client/cli/number_text.h"
#include "client/cli/session.h"
#include "client/cli/text_table.h"
#include "client/spec_text.h"
#include "google/protobuf/struct.pb.h"

namespace hopscope::cli {
namespace {

std::string DefaultText(const google::protobuf::Value& value) {
  google::protobuf::Struct wrapped;
  (*wrapped.mutable_fields())["v"] = value;
  return client::ParamsToJson(wrapped)["v"].dump();
}

std::string CapabilitiesText(const v1::GetCapabilitiesResponse& capabilities) {
  std::string text = absl::StrCat("server ", capabilities.version(), "\n\ntasks\n");
  for (const v1::TaskCapability& task : capabilities.tasks()) {
    absl::StrAppend(&text, "  ", task.name(), ": ", task.description(), "\n");
    if (!task.has_default_window()) continue;
    absl::StrAppend(&text, "    hops ", task.min_hops(), " to ", task.max_hops(), ", ",
                    Count(task.vocab_size()), " token ids, window ", task.default_window().target(),
                    " + ", task.default_window().pre_target());
    // Older servers do not say.
    if (task.max_window_slots() > 0) {
      absl::StrAppend(&text, " (at most ", task.max_window_slots(), " slots)");
    }
    absl::StrAppend(&text, ", padding ", absl::StrJoin(task.paddings(), ", "), "\n");
  }
  absl::StrAppend(&text, "\nscorers\n");
  for (const v1::ScorerCapability& scorer : capabilities.scorers()) {
    absl::StrAppend(&text, "  ", scorer.name(), ": ", scorer.description(), "\n    metrics ",
                    absl::StrJoin(scorer.metrics(), ", "), "\n");
    for (const v1::ScorerParam& param : scorer.params()) {
      absl::StrAppend(&text, "    ", param.name(), ": ", param.description(), " (default ",
                      DefaultText(param.default_value()), "; ", param.allowed(), ")\n");
    }
  }
  std::vector<std::string> dtypes;
  for (const int dtype : capabilities.dtypes()) {
    dtypes.push_back(absl::AsciiStrToLower(
        absl::StripPrefix(v1::Dtype_Name(static_cast<v1::Dtype>(dtype)), "DTYPE_")));
  }
  const v1::Limits& limits = capabilities.limits();
  absl::StrAppend(&text, "\nmodel families  ", absl::StrJoin(capabilities.model_families(), ", "),
                  "\ndtypes          ", absl::StrJoin(dtypes, ", "), "\nlimits          ",
                  Count(limits.max_cells_per_job()), " cells and ",
                  Count(limits.max_units_per_job()), " units a job, ",
                  Count(limits.max_samples_per_cell()), " sequences a cell, ",
                  Count(limits.max_added_tokens()), " added tokens\n");
  return text;
}

std::string CheckpointsText(const std::vector<v1::Checkpoint>& checkpoints) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight, Align::kLeft});
  table.AddRow({"checkpoint", "family", "layers", "heads", "width", "vocab", "bytes", ""});
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    if (!checkpoint.problem().empty()) {
      table.AddRow({checkpoint.ref().name(), checkpoint.family(), "", "", "", "", "",
                    absl::StrCat("cannot be used: ", checkpoint.problem())});
      continue;
    }
    const v1::ModelShape& shape = checkpoint.shape();
    table.AddRow({checkpoint.ref().name(), checkpoint.family(), Count(shape.layers()),
                  Count(shape.heads()), Count(shape.d_model()), Count(shape.vocab_size()),
                  Count(checkpoint.weight_bytes()), ""});
  }
  return table.Render();
}

class CapabilitiesCommand : public Command {
 public:
  std::string name() const override { return "capabilities"; }
  std::string summary() const override { return "Show what a server can evaluate"; }
  std::string examples() const override {
    return "hopscope capabilities\n"
           "hopscope capabilities --checkpoints 'number/*'\n"
           "hopscope capabilities --json\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("--checkpoints", pattern_,
                   "List checkpoints under the server's model root instead,\nall or those that "
                   "match a folder or glob")
        ->type_name("[PATTERN]")
        ->expected(0, 1);
    common_.AddTo(app);
    app_ = &app;
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    if (app_->count("--checkpoints") > 0) return ListCheckpoints(*client, session);
    const absl::StatusOr<v1::GetCapabilitiesResponse> capabilities = client->GetCapabilities();
    if (!capabilities.ok()) return session.Fail(capabilities.status());
    session.console().Print(session.json() ? MessageJson(*capabilities) + "\n"
                                           : CapabilitiesText(*capabilities));
    return kExitOk;
  }

 private:
  int ListCheckpoints(const client::Client& client, Session& session) {
    const absl::StatusOr<std::vector<v1::Checkpoint>> checkpoints =
        client.ListCheckpoints(pattern_);
    if (!checkpoints.ok()) return session.Fail(checkpoints.status());
    if (session.json()) {
      v1::ListCheckpointsResponse response;
      for (const v1::Checkpoint& checkpoint : *checkpoints)
        *response.add_checkpoints() = checkpoint;
      session.console().PrintLine(MessageJson(response));
    } else if (checkpoints->empty()) {
      session.console().Message("no checkpoints");
    } else {
      session.console().Print(CheckpointsText(*checkpoints));
    }
    return kExitOk;
  }

  std::string pattern_;
  CommonOptions common_;
  const CLI::App* app_ = nullptr;
};

}  // namespace

std::unique_ptr<Command> MakeCapabilitiesCommand() {
  return std::make_unique<CapabilitiesCommand>();
}

}  // namespace hopscope::cli
