// hopscope submit and validate: what hands a spec to a server and does not wait for results.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json_text.h"
#include "client/cli/local_options.h"
#include "client/cli/number_text.h"
#include "client/cli/session.h"
#include "client/cli/text_table.h"
#include "client/spec_file.h"
#include "client/spec_text.h"
#include "client/tokens_upload.h"

namespace hopscope::cli {
namespace {

constexpr int kShownCheckpoints = 10;

class SubmitCommand : public Command {
 public:
  std::string name() const override { return "submit"; }
  std::string summary() const override {
    return "Submit a spec, print the job's name, do not wait";
  }
  std::string examples() const override {
    return "hopscope submit sweep.yaml\n"
           "hopscope watch \"$(hopscope submit sweep.yaml)\"\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("SPEC", spec_path_, "The spec, a YAML or JSON file; - reads standard input")
        ->required();
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    absl::StatusOr<client::ParsedSpec> parsed = client::ReadSpecFile(spec_path_);
    if (!parsed.ok()) return session.Fail(parsed.status());
    const absl::StatusOr<client::Client> client = session.Connect(parsed->spec.tenant());
    if (!client.ok()) return session.Fail(client.status());
    const absl::Status uploaded = client::UploadTokensFiles(*client, *parsed);
    if (!uploaded.ok()) return session.Fail(uploaded);
    const absl::StatusOr<v1::EvalJob> job = client->CreateEvalJob(parsed->spec);
    if (!job.ok()) return session.Fail(client::LocateInSpec(*parsed, job.status()));
    for (const std::string& warning : job->warnings()) {
      session.console().Message(absl::StrCat("warning: ", warning), Console::Tone::kWarning);
    }
    session.console().PrintLine(session.json() ? MessageJson(*job) : job->name());
    return kExitOk;
  }

 private:
  std::string spec_path_;
  CommonOptions common_;
};

std::string PlanText(const client::ParsedSpec& parsed, const v1::CreateEvalJobResponse& plan) {
  const v1::PlanEstimate& estimate = plan.estimate();
  TextTable table({Align::kLeft, Align::kLeft});
  table.AddRow({"cells", Count(estimate.cells())});
  table.AddRow({"units", Count(estimate.units())});
  table.AddRow({"sequences", Count(estimate.sequences())});
  table.AddRow({"tokens", Count(estimate.tokens())});
  table.AddRow({"compute", absl::StrCat(Scaled(estimate.flops()), "FLOP, estimated")});
  table.AddRow({"results", absl::StrCat(Scaled(static_cast<double>(estimate.result_bytes())),
                                        "B, estimated")});
  const auto& checkpoints = plan.job().checkpoints();
  table.AddRow({"checkpoints", Count(checkpoints.size())});
  std::string text =
      absl::StrCat(parsed.file, ": the spec is good; nothing was started\n", table.Render(2));
  for (int i = 0; i < checkpoints.size() && i < kShownCheckpoints; ++i) {
    absl::StrAppend(&text, "    ", checkpoints[i].name(), "\n");
  }
  if (checkpoints.size() > kShownCheckpoints) {
    absl::StrAppend(&text, "    ... and ", checkpoints.size() - kShownCheckpoints, " more\n");
  }
  return text;
}

class ValidateCommand : public Command {
 public:
  std::string name() const override { return "validate"; }
  std::string summary() const override {
    return "Check a spec, print its plan and cost; nothing runs";
  }
  std::string examples() const override {
    return "hopscope validate sweep.yaml\n"
           "hopscope validate sweep.yaml --local --model_root checkpoints\n"
           "hopscope validate sweep.yaml --spec\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("SPEC", spec_path_, "The spec, a YAML or JSON file; - reads standard input")
        ->required();
    app.add_flag("--spec", show_spec_, "Print the spec with all defaults filled in, too");
    local_.AddTo(app, /*with_workers=*/false);
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    absl::StatusOr<client::ParsedSpec> parsed = client::ReadSpecFile(spec_path_);
    if (!parsed.ok()) return session.Fail(parsed.status());
    std::unique_ptr<LocalCluster> cluster;
    if (local_.local) {
      absl::StatusOr<std::unique_ptr<LocalCluster>> started =
          StartLocal(environment, local_, /*workers=*/0, session);
      if (!started.ok()) return session.Fail(started.status());
      cluster = *std::move(started);
    }
    const absl::StatusOr<client::Client> client = session.Connect(parsed->spec.tenant());
    if (!client.ok()) return session.Fail(client.status());
    // A plan depends on the lengths of the sequences, so that they are sent here too.
    const absl::Status uploaded = client::UploadTokensFiles(*client, *parsed);
    if (!uploaded.ok()) return session.Fail(uploaded);
    const absl::StatusOr<v1::CreateEvalJobResponse> plan = client->ValidateEvalJob(parsed->spec);
    if (!plan.ok()) return session.Fail(client::LocateInSpec(*parsed, plan.status()));
    for (const std::string& warning : plan->job().warnings()) {
      session.console().Message(absl::StrCat("warning: ", warning), Console::Tone::kWarning);
    }
    if (session.json()) {
      session.console().PrintLine(MessageJson(*plan));
    } else {
      session.console().Print(PlanText(*parsed, *plan));
      if (show_spec_)
        session.console().Print(absl::StrCat("\n", client::SpecToYaml(plan->job().spec())));
    }
    return kExitOk;
  }

 private:
  std::string spec_path_;
  bool show_spec_ = false;
  CommonOptions common_;
  LocalOptions local_;
};

}  // namespace

std::unique_ptr<Command> MakeSubmitCommand() { return std::make_unique<SubmitCommand>(); }
std::unique_ptr<Command> MakeValidateCommand() { return std::make_unique<ValidateCommand>(); }

}  // namespace hopscope::cli
