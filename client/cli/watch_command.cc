// hopscope watch: follows a job.
#include "client/cli/watch_command.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/follow_job.h"
#include "client/cli/session.h"
#include "client/client.h"
#include "client/job_state.h"

namespace hopscope::cli {
namespace {

class WatchCommand : public Command {
 public:
  std::string name() const override { return "watch"; }
  std::string summary() const override { return "Follow a job to its end"; }
  std::string examples() const override {
    return "hopscope watch jobs/3f2b8c1e\n"
           "hopscope watch 3f2b8c1e --json --after 17 >> events.jsonl\n";
  }
  std::string notes() const override {
    return absl::StrCat("Ctrl-C stops watching; the job goes on.\n", kJobExitCodes);
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("JOB", job_, "The job, jobs/ID or ID")->required();
    app.add_option("--after", after_, "Only events after this sequence number (default: 0, all)")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    const absl::StatusOr<v1::EvalJob> job = client->GetEvalJob(client::JobName(job_));
    if (!job.ok()) return session.Fail(job.status());
    const std::unique_ptr<ProgressView> view =
        MakeProgressView(session.json(), &session.console(), environment.clock);
    FollowOptions options;
    options.after_sequence = after_;
    const absl::StatusOr<v1::EvalJob::State> state =
        FollowJob(*client, *job, *view, session.console(), session.interrupts(), options);
    if (!state.ok()) return session.Fail(state.status());
    return ExitCodeOf(*state);
  }

 private:
  std::string job_;
  int64_t after_ = 0;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<ProgressView> MakeProgressView(bool json, Console* console,
                                               const common::Clock* clock) {
  if (json) return MakeProgressJson(console);
  if (console->has_status_line()) return MakeProgressBar(console, clock);
  return MakeProgressLines(console, clock);
}

std::unique_ptr<Command> MakeWatchCommand() { return std::make_unique<WatchCommand>(); }

}  // namespace hopscope::cli
