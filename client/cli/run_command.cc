// hopscope run: submits a spec, follows the job, shows and saves its results.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/follow_job.h"
#include "client/cli/local_options.h"
#include "client/cli/number_text.h"
#include "client/cli/progress_view.h"
#include "client/cli/session.h"
#include "client/cli/show_results.h"
#include "client/cli/watch_command.h"
#include "client/spec_file.h"
#include "client/tokens_upload.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

class RunCommand : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override {
    return "Submit a spec, follow it, show and save its results";
  }
  std::string examples() const override {
    return "hopscope run sweep.yaml --local --model_root checkpoints --output results\n"
           "hopscope run sweep.yaml --server eval.example.com:7070 --allow_insecure\n"
           "hopscope run sweep.yaml --json > events.jsonl\n";
  }
  std::string notes() const override {
    return absl::StrCat(
        "The first Ctrl-C cancels the job and waits for its end; what was finished is shown and "
        "saved.\n"
        "The second leaves at once: a job on a server of its own then stops, one elsewhere goes "
        "on\n"
        "unless the first one has cancelled it. The same holds where standard output cannot be "
        "written.\n",
        kJobExitCodes);
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("SPEC", spec_path_, "The spec, a YAML or JSON file; - reads standard input")
        ->required();
    local_.AddTo(app, /*with_workers=*/true);
    results_.AddTo(app);
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::ParsedSpec> parsed = client::ReadSpecFile(spec_path_);
    if (!parsed.ok()) return session.Fail(parsed.status());

    // Before anything runs: hours later is a bad time to find a full disk or a wrong folder.
    std::unique_ptr<ResultsWriter> writer;
    if (!results_.output.empty()) {
      absl::StatusOr<std::unique_ptr<ResultsWriter>> made = WriteResultsTo(results_.output);
      if (!made.ok()) return session.Fail(made.status());
      writer = *std::move(made);
    }

    std::unique_ptr<LocalCluster> cluster;
    if (local_.local) {
      if (writer == nullptr)
        session.console().Message("note: results are shown, not saved; --output DIR saves them");
      absl::StatusOr<std::unique_ptr<LocalCluster>> started =
          StartLocal(environment, local_, local_.workers, session);
      if (!started.ok()) return session.Fail(started.status());
      cluster = *std::move(started);
    }
    const int code = RunJob(environment, *parsed, std::move(writer), session);
    if (cluster == nullptr) return code;
    // What the loss of the cluster did to the calls says less than why it was lost.
    const absl::Status lost = cluster->lost();
    return lost.ok() ? code : session.Fail(lost);
  }

 private:
  int RunJob(const Environment& environment, client::ParsedSpec parsed,
             std::unique_ptr<ResultsWriter> writer, Session& session) {
    const absl::StatusOr<client::Client> client = session.Connect(parsed.spec.tenant());
    if (!client.ok()) return session.Fail(client.status());

    const absl::Status uploaded = client::UploadTokensFiles(*client, parsed);
    if (!uploaded.ok()) return session.Fail(uploaded);

    absl::StatusOr<v1::EvalJob> job = absl::UnknownError("");
    absl::StatusOr<v1::EvalJob::State> state = absl::UnknownError("");
    {
      const CommandInterrupts::SpareTheFirst spare(&session.interrupts());
      job = client->CreateEvalJob(parsed.spec);
      if (!job.ok()) return session.Fail(client::LocateInSpec(parsed, job.status()));
      session.console().Message(absl::StrCat("job ", job->name(), ": ",
                                             Counted(job->totals().cells(), "cell"), ", ",
                                             Counted(job->totals().items(), "sequence")));
      const std::unique_ptr<ProgressView> view =
          MakeProgressView(session.json(), &session.console(), environment.clock);
      FollowOptions options;
      options.cancel_job_on_interrupt = true;
      state = FollowJob(*client, *job, *view, session.console(), session.interrupts(), options);
    }
    if (!state.ok()) {
      TellWhatBecomesOf(job->name(), state.status(), session.console());
      return session.Fail(state.status());
    }
    const absl::Status shown = ShowResults(*client, job->name(), results_, /*quiet=*/session.json(),
                                           std::move(writer), session);
    if (!shown.ok()) return session.Fail(shown);
    return ExitCodeOf(*state);
  }

  // Where the command leaves a job that has not ended.
  void TellWhatBecomesOf(const std::string& job, const absl::Status& why, Console& console) const {
    const bool output_lost = common::ErrorReason(why) == kOutputLost;
    if (!output_lost && !absl::IsCancelled(why)) return;
    if (!local_.local) {
      console.Message(absl::StrCat(output_lost ? absl::StrCat(job, " goes on") : "left",
                                   "; follow it with: hopscope watch ", job));
    } else if (output_lost) {
      console.Message(absl::StrCat(job, " ends here, with the local server that it ran on"));
    }
  }

  std::string spec_path_;
  CommonOptions common_;
  LocalOptions local_;
  ResultsOptions results_;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace hopscope::cli
