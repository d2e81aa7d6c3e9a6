#include "client/cli/progress_view.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/json_text.h"
#include "client/cli/number_text.h"
#include "client/cli/text_table.h"
#include "client/job_state.h"

namespace hopscope::cli {
namespace {

constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);
constexpr int kSmallestBar = 10;
constexpr int kLargestBar = 40;

Console::Tone ToneOf(const v1::EvalEvent& event) {
  switch (event.kind_case()) {
    case v1::EvalEvent::kUnitFailed:
      return event.unit_failed().will_retry() ? Console::Tone::kWarning : Console::Tone::kError;
    case v1::EvalEvent::kWorkerLost:
    case v1::EvalEvent::kWarning:
      return Console::Tone::kWarning;
    case v1::EvalEvent::kCellCompleted:
      return event.cell_completed().result().state() == v1::CellResult::STATE_FAILED
                 ? Console::Tone::kError
                 : Console::Tone::kPlain;
    case v1::EvalEvent::kJobFinished:
      switch (event.job_finished().state()) {
        case v1::EvalJob::STATE_SUCCEEDED:
          return Console::Tone::kGood;
        case v1::EvalJob::STATE_FAILED:
          return Console::Tone::kError;
        default:
          return Console::Tone::kWarning;
      }
    default:
      return Console::Tone::kPlain;
  }
}

double DoneRatio(const JobTally& tally) {
  if (tally.items() <= 0) return 0;
  return std::min(1.0,
                  static_cast<double>(tally.items_done()) / static_cast<double>(tally.items()));
}

// Time left at the rate of the last seconds.
std::string EtaText(const JobTally& tally) {
  if (tally.items_per_second() <= 0) return "-";
  const double left = static_cast<double>(tally.items() - tally.items_done());
  return ClockText(absl::Seconds(std::max(0.0, left) / tally.items_per_second()));
}

std::string RateText(const JobTally& tally) {
  const double rate = tally.items_per_second();
  return rate <= 0
             ? "- items/s"
             : absl::StrCat(rate < 10 ? Fixed(rate, 1) : Count(static_cast<int64_t>(rate + 0.5)),
                            " items/s");
}

// What the bar and the lines have in common.
class TextProgress : public ProgressView {
 public:
  TextProgress(Console* console, const common::Clock* clock) : console_(*console), clock_(*clock) {}

  void Begin(const v1::EvalJob& job, int64_t after_sequence) override {
    tally_ = JobTally(job, after_sequence == 0);
    start_ = clock_.Now();
    for (const std::string& warning : job.warnings()) {
      if (told_.insert(warning).second) {
        console_.Message(absl::StrCat("warning: ", warning), Console::Tone::kWarning);
      }
    }
  }

  void ShowWaiting(const std::string& reason) override {
    console_.Message(absl::StrCat("pending: ", reason));
  }

 protected:
  Console& console() { return console_; }
  const JobTally& tally() const { return tally_; }
  absl::Time Now() const { return clock_.Now(); }
  absl::Duration elapsed() const { return clock_.Now() - start_; }

  void TakeIn(const v1::EvalEvent& event) { tally_.Add(event); }

  // Prints what there is to say about an event. Warnings are with the job and, on a watch from its
  // start, events too.
  void Tell(const v1::EvalEvent& event) {
    if (event.has_warning() && !told_.insert(event.warning().message()).second) return;
    const std::string text = EventText(event, tally_);
    if (!text.empty()) console_.Message(text, ToneOf(event));
  }

 private:
  Console& console_;
  const common::Clock& clock_;
  JobTally tally_;
  absl::Time start_;
  std::set<std::string> told_;
};

class ProgressBar : public TextProgress {
 public:
  using TextProgress::TextProgress;

  void Begin(const v1::EvalJob& job, int64_t after_sequence) override {
    TextProgress::Begin(job, after_sequence);
    Draw();
  }

  bool Show(const v1::EvalEvent& event) override {
    TakeIn(event);
    if (event.has_job_finished()) {
      console().SetStatus("");
      Tell(event);
      return true;
    }
    // Cells that went well, and the job's states, only move the bar.
    const bool cell_failed =
        event.has_cell_completed() &&
        event.cell_completed().result().state() == v1::CellResult::STATE_FAILED;
    if (cell_failed || event.has_unit_failed() || event.has_worker_lost() || event.has_warning())
      Tell(event);
    DrawNowAndThen();
    return true;
  }

  void Tick() override {
    if (!client::IsFinal(tally().state())) DrawNowAndThen();
  }

  void End() override { console().SetStatus(""); }

 private:
  void DrawNowAndThen() {
    if (Now() >= drawn_ + kRedrawInterval) Draw();
  }

  void Draw() {
    drawn_ = Now();
    console().SetStatus(ProgressBarText(tally(), elapsed(), console().columns() - 1));
  }

  absl::Time drawn_ = absl::InfinitePast();
};

class ProgressLines : public TextProgress {
 public:
  ProgressLines(Console* console, const common::Clock* clock, absl::Duration interval)
      : TextProgress(console, clock), interval_(interval) {}

  void Begin(const v1::EvalJob& job, int64_t after_sequence) override {
    TextProgress::Begin(job, after_sequence);
    last_progress_ = Now();
  }

  bool Show(const v1::EvalEvent& event) override {
    TakeIn(event);
    Tell(event);
    if (event.has_cell_progress()) ShowProgress();
    return true;
  }

  void Tick() override {
    if (tally().state() == v1::EvalJob::STATE_RUNNING) ShowProgress();
  }

  void End() override {}

 private:
  void ShowProgress() {
    if (Now() < last_progress_ + interval_) return;
    last_progress_ = Now();
    console().Message(absl::StrCat(Fixed(100 * DoneRatio(tally()), 0), "%  ",
                                   Count(tally().items_done()), "/", Count(tally().items()),
                                   " items  ", RateText(tally()), "  elapsed ",
                                   ClockText(elapsed()), "  ETA ", EtaText(tally())));
  }

  const absl::Duration interval_;
  absl::Time last_progress_;
};

class ProgressJson : public ProgressView {
 public:
  explicit ProgressJson(Console* console) : console_(*console) {}

  void Begin(const v1::EvalJob&, int64_t) override {}
  bool Show(const v1::EvalEvent& event) override { return console_.PrintLine(MessageJson(event)); }
  void Tick() override {}
  void ShowWaiting(const std::string& reason) override {
    console_.Message(absl::StrCat("pending: ", reason));
  }
  void End() override {}

 private:
  Console& console_;
};

}  // namespace

std::string ProgressBarText(const JobTally& tally, absl::Duration elapsed, int columns) {
  const double ratio = DoneRatio(tally);
  // What grows keeps its width, so that the rest of the line stands still.
  const std::string percent = absl::StrFormat("%3.0f%%", 100 * ratio);
  const std::string all = Count(tally.items());
  // The most important first.
  std::vector<std::string> parts = {
      absl::StrFormat("%*s/%s items", static_cast<int>(all.size()), Count(tally.items_done()), all),
      absl::StrCat("ETA ", EtaText(tally)),
      RateText(tally),
      absl::StrCat("cells ", tally.cells_ended(), "/", tally.cells()),
  };
  if (tally.cells_failed() > 0) parts.push_back(absl::StrCat(tally.cells_failed(), " failed"));
  if (tally.workers_lost() > 0) parts.push_back(absl::StrCat(tally.workers_lost(), " lost"));
  parts.push_back(absl::StrCat("elapsed ", ClockText(elapsed)));

  // Room for a small bar comes before the less important parts, on a terminal that is not very
  // narrow.
  const int for_bar = columns >= 60 ? kSmallestBar + 3 : 0;
  std::string text = percent;
  for (const std::string& part : parts) {
    if (static_cast<int>(DisplayWidth(text) + 2 + DisplayWidth(part)) + for_bar > columns) break;
    absl::StrAppend(&text, "  ", part);
  }
  const int room = columns - static_cast<int>(DisplayWidth(text)) - 3;
  if (room >= kSmallestBar) {
    const int width = std::min(room, kLargestBar);
    const int filled = static_cast<int>(ratio * width);
    std::string bar(filled, '=');
    if (filled < width) bar += '>';
    bar.resize(width, ' ');
    text = absl::StrCat("[", bar, "] ", text);
  }
  return CutToWidth(text, columns);
}

std::unique_ptr<ProgressView> MakeProgressBar(Console* console, const common::Clock* clock) {
  return std::make_unique<ProgressBar>(console, clock);
}

std::unique_ptr<ProgressView> MakeProgressLines(Console* console, const common::Clock* clock,
                                                absl::Duration interval) {
  return std::make_unique<ProgressLines>(console, clock, interval);
}

std::unique_ptr<ProgressView> MakeProgressJson(Console* console) {
  return std::make_unique<ProgressJson>(console);
}

}  // namespace hopscope::cli
