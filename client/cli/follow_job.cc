#include "client/cli/follow_job.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"
#include "client/job_state.h"
#include "common/mutex.h"

namespace hopscope::cli {
namespace {

// Runs beside the thread that reads events, which may be blocked for long: tells the view that time
// passes, asks why a job waits, and cancels it when it is told to.
class Companion {
 public:
  Companion(const client::Client& client, const v1::EvalJob& job, ProgressView& view,
            Console& console, CommandInterrupts& interrupts, const FollowOptions& options)
      : client_(client),
        job_(job.name()),
        view_(view),
        console_(console),
        interrupts_(interrupts),
        options_(options),
        waits_(job.state() == v1::EvalJob::STATE_PENDING ||
               job.state() == v1::EvalJob::STATE_PAUSED) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Companion() {
    {
      common::MutexLock lock(&mutex_);
      ended_ = true;
    }
    interrupts_.Wake();
    thread_.join();
  }

  // Shows an event without getting in the way of the other thread.
  bool Show(const v1::EvalEvent& event) {
    common::MutexLock lock(&mutex_);
    if (event.has_job_state_changed()) {
      const v1::EvalJob::State state = event.job_state_changed().state();
      waits_ = state == v1::EvalJob::STATE_PENDING || state == v1::EvalJob::STATE_PAUSED;
    }
    return view_.Show(event);
  }

 private:
  void Run() {
    int interrupts = 0;
    // The first moments of a job are no news.
    absl::Time ask_at = absl::Now() + options_.tick;
    while (true) {
      const bool had_none = interrupts == 0;
      interrupts = interrupts_.WaitForMore(interrupts, options_.tick);
      if (had_none && interrupts > 0 && options_.cancel_job_on_interrupt && !ended()) CancelJob();
      {
        common::MutexLock lock(&mutex_);
        if (ended_) return;
        view_.Tick();
        if (!waits_) continue;
      }
      if (absl::Now() >= ask_at) {
        ask_at = absl::Now() + options_.ask_why_waiting;
        AskWhyItWaits();
      }
    }
  }

  bool ended() {
    common::MutexLock lock(&mutex_);
    return ended_;
  }

  void CancelJob() {
    console_.Message(
        absl::StrCat("cancelling ", job_, "; Ctrl-C again leaves without waiting for it"),
        Console::Tone::kWarning);
    const auto cancelled = client_.CancelEvalJob(job_);
    // One that has ended meanwhile cannot be cancelled, and its end is on its way.
    if (!cancelled.ok() && !absl::IsFailedPrecondition(cancelled.status()) &&
        !absl::IsCancelled(cancelled.status())) {
      console_.Message(absl::StrCat("cannot cancel ", job_, ": ", cancelled.status().message()),
                       Console::Tone::kError);
    }
  }

  void AskWhyItWaits() {
    const auto job = client_.GetEvalJob(job_);
    if (!job.ok()) return;  // the thread that reads events finds out, too
    common::MutexLock lock(&mutex_);
    if (!waits_ || job->waiting_reason() == waiting_reason_) return;
    waiting_reason_ = job->waiting_reason();
    if (!waiting_reason_.empty()) view_.ShowWaiting(waiting_reason_);
  }

  const client::Client& client_;
  const std::string job_;
  ProgressView& view_;
  Console& console_;
  CommandInterrupts& interrupts_;
  const FollowOptions options_;
  common::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool waits_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_reason_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

absl::StatusOr<v1::EvalJob::State> ReadEvents(client::EventReader& reader, const std::string& job,
                                              const client::Client& client, Companion& companion) {
  std::optional<v1::EvalJob::State> last;
  while (true) {
    absl::StatusOr<std::optional<v1::EvalEvent>> event = reader.Next();
    if (!event.ok()) return event.status();
    if (!event->has_value()) break;
    if (!companion.Show(**event)) return OutputLostError();
    if ((*event)->has_job_finished()) last = (*event)->job_finished().state();
  }
  if (last.has_value()) return *last;
  // The watch began after the job's last event.
  absl::StatusOr<v1::EvalJob> ended = client.GetEvalJob(job);
  if (!ended.ok()) return ended.status();
  return ended->state();
}

}  // namespace

absl::StatusOr<v1::EvalJob::State> FollowJob(const client::Client& client, const v1::EvalJob& job,
                                             ProgressView& view, Console& console,
                                             CommandInterrupts& interrupts,
                                             const FollowOptions& options) {
  view.Begin(job, options.after_sequence);
  const std::unique_ptr<client::EventReader> reader =
      client.WatchEvalJob(job.name(), options.after_sequence);
  absl::StatusOr<v1::EvalJob::State> state = absl::UnknownError("");
  {
    Companion companion(client, job, view, console, interrupts, options);
    state = ReadEvents(*reader, job.name(), client, companion);
  }
  view.End();
  return state;
}

}  // namespace hopscope::cli
