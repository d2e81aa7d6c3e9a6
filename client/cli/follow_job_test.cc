#include "client/cli/follow_job.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/test_events.h"
#include "client/fake_event_reader.h"
#include "client/mock_connection.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::_;
using ::testing::AnyNumber;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

// Remembers what it was shown.
class RecordingView : public ProgressView {
 public:
  void Begin(const v1::EvalJob&, int64_t after) override { begun_after = after; }
  bool Show(const v1::EvalEvent& event) override {
    sequences.push_back(event.sequence());
    return !closed;
  }
  void Tick() override {
    common::MutexLock lock(&mutex_);
    ++ticks_;
    changed_.SignalAll();
  }
  void ShowWaiting(const std::string& reason) override {
    common::MutexLock lock(&mutex_);
    waiting_.push_back(reason);
    changed_.SignalAll();
  }
  void End() override { ended = true; }

  void AwaitTick() {
    common::MutexLock lock(&mutex_);
    while (ticks_ == 0) changed_.Wait(&mutex_);
  }
  void AwaitWaiting(size_t count) {
    common::MutexLock lock(&mutex_);
    while (waiting_.size() < count) changed_.Wait(&mutex_);
  }
  std::vector<std::string> waiting() {
    common::MutexLock lock(&mutex_);
    return waiting_;
  }

  int64_t begun_after = -1;
  std::vector<int64_t> sequences;
  bool ended = false;
  bool closed = false;

 private:
  common::Mutex mutex_;
  common::CondVar changed_;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
};

class FollowJobTest : public testing::Test {
 protected:
  FollowJobTest() { options_.tick = absl::Milliseconds(5); }

  // Events of a watch; `at` and `call`: as FakeEventReader::BeforeEvent.
  void Watch(std::vector<v1::EvalEvent> events, absl::Status end = absl::OkStatus(), size_t at = 0,
             std::function<void()> call = nullptr) {
    auto reader = std::make_unique<client::FakeEventReader>(std::move(events), std::move(end));
    reader->BeforeEvent(at, std::move(call));
    reader_ = reader.get();
    EXPECT_CALL(*connection_, WatchEvalJob(_)).WillOnce(Return(testing::ByMove(std::move(reader))));
  }

  absl::StatusOr<v1::EvalJob::State> Follow(const v1::EvalJob& job) {
    return FollowJob(client::Client(connection_), job, view_, console_, command_interrupts_,
                     options_);
  }

  std::shared_ptr<NiceMock<client::MockConnection>> connection_ =
      std::make_shared<NiceMock<client::MockConnection>>();
  client::FakeEventReader* reader_ = nullptr;
  std::ostringstream out_, err_;
  Console console_{{.out = &out_, .err = &err_}};
  RecordingView view_;
  FakeInterrupts interrupts_;
  client::Cancellation cancellation_;
  CommandInterrupts command_interrupts_{&interrupts_, &cancellation_};
  FollowOptions options_;
};

TEST_F(FollowJobTest, ShowsAllEventsAndReturnsTheLastState) {
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING), ProgressEvent(1, 2, 3),
         FinishedEvent(2, v1::EvalJob::STATE_FAILED, {})});
  options_.after_sequence = 0;
  const auto state = Follow(MakeJob(1, 2));
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(*state, v1::EvalJob::STATE_FAILED);
  EXPECT_THAT(view_.sequences, ElementsAre(1, 0, 2));
  EXPECT_EQ(view_.begun_after, 0);
  EXPECT_TRUE(view_.ended);
}

TEST_F(FollowJobTest, ErrorsOfTheWatchAreReturned) {
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING)}, absl::UnavailableError("gone"));
  EXPECT_EQ(Follow(MakeJob(1, 2)).status(), absl::UnavailableError("gone"));
  EXPECT_TRUE(view_.ended);
}

TEST_F(FollowJobTest, AJobThatHadEndedBeforeIsAskedForItsState) {
  Watch({});
  v1::GetEvalJobResponse response;
  response.mutable_job()->set_state(v1::EvalJob::STATE_CANCELLED);
  EXPECT_CALL(*connection_, GetEvalJob(_)).WillOnce(Return(response));
  EXPECT_EQ(*Follow(MakeJob(1, 2)), v1::EvalJob::STATE_CANCELLED);
}

TEST_F(FollowJobTest, StopsWhereNobodyReadsAnyMore) {
  view_.closed = true;
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING), StateEvent(2, v1::EvalJob::STATE_RUNNING)});
  EXPECT_EQ(Follow(MakeJob(1, 2)).status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(view_.sequences, ElementsAre(1));
}

TEST_F(FollowJobTest, FirstInterruptCancelsTheJobAndWaitsForItsEnd) {
  options_.cancel_job_on_interrupt = true;
  const CommandInterrupts::SpareTheFirst spare(&command_interrupts_);
  common::Mutex mutex;
  common::CondVar changed;
  bool asked = false;
  EXPECT_CALL(*connection_, CancelEvalJob(_))
      .WillOnce([&](const v1::CancelEvalJobRequest& request) {
        EXPECT_EQ(request.name(), "jobs/1");
        common::MutexLock lock(&mutex);
        asked = true;
        changed.SignalAll();
        return v1::CancelEvalJobResponse();
      });
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING),
         FinishedEvent(2, v1::EvalJob::STATE_CANCELLED, {})},
        absl::OkStatus(), 1, [&] {
          interrupts_.Trigger();
          common::MutexLock lock(&mutex);
          while (!asked) changed.Wait(&mutex);
        });
  EXPECT_EQ(*Follow(MakeJob(1, 2)), v1::EvalJob::STATE_CANCELLED);
  EXPECT_FALSE(cancellation_.cancelled());
  EXPECT_THAT(err_.str(), HasSubstr("cancelling jobs/1"));
}

TEST_F(FollowJobTest, AnInterruptFromBeforeTheJobWasKnownCounts) {
  options_.cancel_job_on_interrupt = true;
  const CommandInterrupts::SpareTheFirst spare(&command_interrupts_);
  interrupts_.Trigger();
  common::Mutex mutex;
  common::CondVar changed;
  bool asked = false;
  EXPECT_CALL(*connection_, CancelEvalJob(_)).WillOnce([&](const auto&) {
    common::MutexLock lock(&mutex);
    asked = true;
    changed.SignalAll();
    return v1::CancelEvalJobResponse();
  });
  Watch({FinishedEvent(1, v1::EvalJob::STATE_CANCELLED, {})}, absl::OkStatus(), 0, [&] {
    common::MutexLock lock(&mutex);
    while (!asked) changed.Wait(&mutex);
  });
  EXPECT_EQ(*Follow(MakeJob(1, 2)), v1::EvalJob::STATE_CANCELLED);
}

TEST_F(FollowJobTest, ACancelThatFailsIsToldUnlessTheJobHasEnded) {
  options_.cancel_job_on_interrupt = true;
  for (const bool ended : {true, false}) {
    FakeInterrupts interrupts;
    CommandInterrupts command_interrupts(&interrupts, &cancellation_);
    const CommandInterrupts::SpareTheFirst spare(&command_interrupts);
    common::Mutex mutex;
    common::CondVar changed;
    bool asked = false;
    EXPECT_CALL(*connection_, CancelEvalJob(_))
        .WillOnce([&](const auto&) -> absl::StatusOr<v1::CancelEvalJobResponse> {
          common::MutexLock lock(&mutex);
          asked = true;
          changed.SignalAll();
          if (ended) return absl::FailedPreconditionError("has ended");
          return absl::PermissionDeniedError("not yours");
        });
    Watch({FinishedEvent(1, v1::EvalJob::STATE_SUCCEEDED, {})}, absl::OkStatus(), 0, [&] {
      interrupts.Trigger();
      common::MutexLock lock(&mutex);
      while (!asked) changed.Wait(&mutex);
    });
    EXPECT_TRUE(FollowJob(client::Client(connection_), MakeJob(1, 2), view_, console_,
                          command_interrupts, options_)
                    .ok());
    if (ended) {
      EXPECT_THAT(err_.str(), Not(HasSubstr("cannot cancel")));
    } else {
      EXPECT_THAT(err_.str(), HasSubstr("cannot cancel jobs/1: not yours"));
    }
  }
}

TEST_F(FollowJobTest, SecondInterruptLeavesAtOnce) {
  options_.cancel_job_on_interrupt = true;
  const CommandInterrupts::SpareTheFirst spare(&command_interrupts_);
  EXPECT_CALL(*connection_, CancelEvalJob(_))
      .Times(AnyNumber())
      .WillRepeatedly(Return(v1::CancelEvalJobResponse()));
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING)}, absl::OkStatus(), 1, [&] {
    interrupts_.Trigger();
    EXPECT_FALSE(cancellation_.cancelled());
    interrupts_.Trigger();
    EXPECT_TRUE(cancellation_.cancelled());
    // What the connection does for its readers.
    reader_->Cancel();
  });
  EXPECT_EQ(Follow(MakeJob(1, 2)).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(FollowJobTest, AnInterruptWithoutAJobOfItsOwnLeavesAtOnce) {
  EXPECT_CALL(*connection_, CancelEvalJob(_)).Times(0);
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING)}, absl::OkStatus(), 1, [&] {
    interrupts_.Trigger();
    EXPECT_TRUE(cancellation_.cancelled());
    reader_->Cancel();
  });
  EXPECT_EQ(Follow(MakeJob(1, 2)).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(FollowJobTest, TimePassesWhileNoEventsCome) {
  Watch({FinishedEvent(1, v1::EvalJob::STATE_SUCCEEDED, {})}, absl::OkStatus(), 0,
        [&] { view_.AwaitTick(); });
  EXPECT_TRUE(Follow(MakeJob(1, 2)).ok());
}

TEST_F(FollowJobTest, AJobThatWaitsSaysWhyAndWhenThatChanges) {
  options_.ask_why_waiting = absl::Milliseconds(1);
  v1::EvalJob job = MakeJob(1, 2);
  job.set_state(v1::EvalJob::STATE_PENDING);
  int asked = 0;
  EXPECT_CALL(*connection_, GetEvalJob(_)).WillRepeatedly([&](const auto&) {
    v1::GetEvalJobResponse response;
    *response.mutable_job() = job;
    response.mutable_job()->set_waiting_reason(++asked < 5 ? "no worker is connected"
                                                           : "no worker has float64");
    return response;
  });
  Watch({StateEvent(1, v1::EvalJob::STATE_RUNNING),
         FinishedEvent(2, v1::EvalJob::STATE_SUCCEEDED, {})},
        absl::OkStatus(), 0, [&] { view_.AwaitWaiting(2); });
  EXPECT_TRUE(Follow(job).ok());
  EXPECT_THAT(view_.waiting(), ElementsAre("no worker is connected", "no worker has float64"));
}

}  // namespace
}  // namespace hopscope::cli
