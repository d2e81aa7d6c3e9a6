// hopscope get, list, cancel and results: what reads or ends one job, or shows many.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json_text.h"
#include "client/cli/number_text.h"
#include "client/cli/session.h"
#include "client/cli/show_results.h"
#include "client/cli/text_table.h"
#include "client/job_state.h"
#include "client/spec_text.h"

namespace hopscope::cli {
namespace {

std::string FailureText(const v1::Failure& failure) {
  return absl::StrCat(failure.reason(), ": ", failure.message());
}

std::string JobText(const v1::EvalJob& job) {
  const v1::JobTotals& totals = job.totals();
  TextTable table({Align::kLeft, Align::kLeft});
  table.AddRow({"state", client::StateName(job.state())});
  if (!job.waiting_reason().empty()) table.AddRow({"waits", job.waiting_reason()});
  if (job.has_failure()) table.AddRow({"failure", FailureText(job.failure())});
  if (!job.spec().name().empty()) table.AddRow({"spec", job.spec().name()});
  if (!job.spec().tenant().empty()) table.AddRow({"tenant", job.spec().tenant()});
  table.AddRow({"created", TimeText(job.create_time())});
  table.AddRow({"started", TimeText(job.start_time())});
  table.AddRow({"ended", TimeText(job.end_time())});
  const auto counts = [](int64_t done, int64_t failed, int64_t all) {
    return absl::StrCat(Count(done), " of ", Count(all),
                        failed > 0 ? absl::StrCat(", ", Count(failed), " failed") : "");
  };
  table.AddRow({"cells", counts(totals.cells_completed(), totals.cells_failed(), totals.cells())});
  table.AddRow({"units", counts(totals.units_completed(), totals.units_failed(), totals.units())});
  table.AddRow(
      {"sequences", counts(totals.items_completed(), totals.items_failed(), totals.items())});
  for (const std::string& warning : job.warnings()) table.AddRow({"warning", warning});
  for (const std::string& kind : job.worker_kinds()) table.AddRow({"worker kind", kind});
  return absl::StrCat(job.name(), "\n", table.Render(2));
}

class GetCommand : public Command {
 public:
  std::string name() const override { return "get"; }
  std::string summary() const override { return "Show a job"; }
  std::string examples() const override {
    return "hopscope get jobs/3f2b8c1e\n"
           "hopscope get 3f2b8c1e --spec\n"
           "hopscope get 3f2b8c1e --json\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("JOB", job_, "The job, jobs/ID or ID")->required();
    app.add_flag("--spec", show_spec_, "Print its spec with all defaults filled in, too");
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    const absl::StatusOr<v1::EvalJob> job = client->GetEvalJob(client::JobName(job_));
    if (!job.ok()) return session.Fail(job.status());
    if (session.json()) {
      session.console().PrintLine(MessageJson(*job));
    } else {
      session.console().Print(JobText(*job));
      if (show_spec_) session.console().Print(absl::StrCat("\n", client::SpecToYaml(job->spec())));
    }
    return kExitOk;
  }

 private:
  std::string job_;
  bool show_spec_ = false;
  CommonOptions common_;
};

class ListCommand : public Command {
 public:
  std::string name() const override { return "list"; }
  std::string summary() const override { return "List jobs, newest first"; }
  std::string examples() const override {
    return "hopscope list\n"
           "hopscope list --filter 'state=RUNNING'\n"
           "hopscope list --filter 'label.sweep=lengths AND create_time>=2026-01-01T00:00:00Z' "
           "--limit 100\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("--filter", filter_,
                   "Comparisons joined by AND: state=STATE, label.KEY=VALUE,\ncreate_time>=TIME "
                   "(also <, <=, >)")
        ->type_name("TEXT");
    app.add_option("--limit", limit_, "At most so many (default: 20)")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    absl::StatusOr<std::vector<v1::EvalJob>> jobs = client->ListEvalJobs(filter_, limit_);
    if (!jobs.ok()) return session.Fail(jobs.status());
    if (session.json()) {
      v1::ListEvalJobsResponse response;
      for (v1::EvalJob& job : *jobs) *response.add_jobs() = std::move(job);
      session.console().PrintLine(MessageJson(response));
      return kExitOk;
    }
    if (jobs->empty()) {
      session.console().Message("no jobs");
      return kExitOk;
    }
    TextTable table(
        {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft});
    table.AddRow({"job", "state", "cells", "done", "created", "spec"});
    for (const v1::EvalJob& job : *jobs) {
      const v1::JobTotals& totals = job.totals();
      const double ratio = totals.items() > 0 ? static_cast<double>(totals.items_completed()) /
                                                    static_cast<double>(totals.items())
                                              : 0;
      table.AddRow({job.name(), client::StateName(job.state()), Count(totals.cells()),
                    absl::StrCat(Fixed(100 * ratio, 0), "%"), TimeText(job.create_time()),
                    CutToWidth(job.spec().name(), 30)});
    }
    session.console().Print(table.Render());
    return kExitOk;
  }

 private:
  std::string filter_;
  int64_t limit_ = 20;
  CommonOptions common_;
};

class CancelCommand : public Command {
 public:
  std::string name() const override { return "cancel"; }
  std::string summary() const override { return "Cancel a job"; }
  std::string examples() const override { return "hopscope cancel jobs/3f2b8c1e\n"; }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("JOB", job_, "The job, jobs/ID or ID")->required();
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    const absl::StatusOr<v1::EvalJob> job = client->CancelEvalJob(client::JobName(job_));
    if (!job.ok()) return session.Fail(job.status());
    session.console().PrintLine(
        session.json() ? MessageJson(*job)
                       : absl::StrCat(job->name(), " ", client::StateName(job->state())));
    return kExitOk;
  }

 private:
  std::string job_;
  CommonOptions common_;
};

class ResultsCommand : public Command {
 public:
  std::string name() const override { return "results"; }
  std::string summary() const override { return "Show or save what a job has found so far"; }
  std::string examples() const override {
    return "hopscope results jobs/3f2b8c1e\n"
           "hopscope results 3f2b8c1e --output results\n"
           "hopscope results 3f2b8c1e --by_hops --per_head --gamma 0.05\n"
           "hopscope results 3f2b8c1e --json | jq '.cells[] | {hops, accuracy, stderr}'\n";
  }
  std::string notes() const override {
    return "Labels: pos = positional, sym = symbolic, dif = diffuse (high on both), mix = mixed,\n"
           "??? = the swaps move too little attention to tell. docs/scores.md explains them.\n";
  }
  bool json() const override { return common_.json; }

  void AddOptions(CLI::App& app) override {
    app.add_option("JOB", job_, "The job, jobs/ID or ID")->required();
    results_.AddTo(app);
    common_.AddTo(app);
  }

  int Run(const Environment& environment) override {
    Session session(environment, common_);
    std::unique_ptr<ResultsWriter> writer;
    if (!results_.output.empty()) {
      absl::StatusOr<std::unique_ptr<ResultsWriter>> made = WriteResultsTo(results_.output);
      if (!made.ok()) return session.Fail(made.status());
      writer = *std::move(made);
    }
    const absl::StatusOr<client::Client> client = session.Connect();
    if (!client.ok()) return session.Fail(client.status());
    const absl::Status shown = ShowResults(*client, client::JobName(job_), results_,
                                           /*quiet=*/false, std::move(writer), session);
    if (!shown.ok()) return session.Fail(shown);
    return kExitOk;
  }

 private:
  std::string job_;
  ResultsOptions results_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<Command> MakeGetCommand() { return std::make_unique<GetCommand>(); }
std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }
std::unique_ptr<Command> MakeCancelCommand() { return std::make_unique<CancelCommand>(); }
std::unique_ptr<Command> MakeResultsCommand() { return std::make_unique<ResultsCommand>(); }

}  // namespace hopscope::cli
