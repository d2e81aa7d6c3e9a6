#include "client/resuming_event_reader.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/job_state.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "grpcpp/client_context.h"

namespace hopscope::client {
namespace {

class ResumingEventReader : public EventReader {
 public:
  ResumingEventReader(EvaluationStub* stub, const v1::WatchEvalJobRequest& request,
                      const ConnectionOptions& options)
      : stub_(stub),
        job_(request.name()),
        options_(options),
        backoff_(options.backoff, JitterSeed(options)),
        last_sequence_(request.after_sequence()) {
    if (options_.cancellation != nullptr) {
      outer_hook_.emplace(options_.cancellation, [this] { cancellation_.Cancel(); });
    }
  }

  absl::StatusOr<std::optional<v1::EvalEvent>> Next() override {
    while (end_.ok() && !finished_) {
      if (cancellation_.cancelled()) return absl::CancelledError("cancelled");
      if (stream_ == nullptr) Open();
      absl::StatusOr<std::optional<v1::EvalEvent>> read = stream_->Read();
      if (!read.ok()) {
        Fail(read.status());
      } else if (!read->has_value()) {
        EndOfStream();
      } else if (Accept(**read)) {
        return read;
      }
    }
    if (!end_.ok()) return end_;
    return std::optional<v1::EvalEvent>();
  }

  void Cancel() override { cancellation_.Cancel(); }

 private:
  void Open() {
    v1::WatchEvalJobRequest request;
    request.set_name(job_);
    request.set_after_sequence(last_sequence_);
    auto context = std::make_unique<grpc::ClientContext>();
    // Opening a stream blocks while the channel connects.
    stream_hook_.emplace(&cancellation_, [context = context.get()] { context->TryCancel(); });
    stream_ = stub_->WatchEvalJob(std::move(context), request);
    stream_hook_.emplace(&cancellation_, [stream = stream_.get()] { stream->Cancel(); });
  }

  void Close() {
    stream_hook_.reset();
    stream_.reset();
  }

  // Whether the event is one to hand out.
  bool Accept(const v1::EvalEvent& event) {
    const int64_t sequence = event.sequence();
    // A server that replays more than it was asked for repeats itself; what was given is not given
    // again.
    if (sequence > 0 && sequence <= last_sequence_) return false;
    if (sequence > last_sequence_ + 1) {
      Close();
      const absl::Status lost =
          common::MakeError(absl::StatusCode::kDataLoss, "EVENTS_MISSING",
                            absl::StrCat("the server sent event ", sequence, " of ", job_,
                                         " after event ", last_sequence_));
      // Asking once more tells a stream that lost something from a server that did.
      if (gap_after_ == last_sequence_) {
        end_ = lost;
      } else {
        gap_after_ = last_sequence_;
        WaitToResume(lost);
      }
      return false;
    }
    first_failure_.reset();
    backoff_.Reset();
    if (sequence > 0) last_sequence_ = sequence;
    finished_ = event.has_job_finished();
    if (finished_) Close();
    return true;
  }

  // OK, but without JobFinished: either a server that stops, or a job that had ended before
  // after_sequence.
  void EndOfStream() {
    Close();
    v1::GetEvalJobRequest request;
    request.set_name(job_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(options_.call_timeout));
    const Cancellation::Hook hook(&cancellation_, [&context] { context.TryCancel(); });
    const absl::StatusOr<v1::GetEvalJobResponse> response = stub_->GetEvalJob(context, request);
    if (!response.ok()) {
      Fail(response.status());
    } else if (IsFinal(response->job().state()) &&
               response->job().last_sequence() <= last_sequence_) {
      finished_ = true;
    } else {
      WaitToResume(
          absl::UnavailableError(absl::StrCat("the server ended the events of ", job_, " early")));
    }
  }

  void Fail(const absl::Status& error) {
    Close();
    if (cancellation_.cancelled()) return;  // Next says so
    if (IsTransient(error)) {
      WaitToResume(error);
    } else {
      end_ = error;
    }
  }

  void WaitToResume(const absl::Status& error) {
    const absl::Time now = options_.clock->Now();
    if (!first_failure_.has_value()) first_failure_ = now;
    const absl::Duration wait =
        std::max(backoff_.Next(), common::GetRetryDelay(error).value_or(absl::ZeroDuration()));
    if (now + wait > *first_failure_ + options_.reconnect_for) {
      end_ = error;
      return;
    }
    if (options_.on_retry) options_.on_retry({"WatchEvalJob", error, wait});
    Pause(options_, wait, cancellation_);
  }

  EvaluationStub* const stub_;
  const std::string job_;
  const ConnectionOptions options_;
  Backoff backoff_;
  int64_t last_sequence_;
  // Where an event was missing last; -1: nowhere.
  int64_t gap_after_ = -1;
  bool finished_ = false;
  absl::Status end_;
  std::optional<absl::Time> first_failure_;
  Cancellation cancellation_;
  std::unique_ptr<EventStream> stream_;
  // Destroyed before what they touch.
  std::optional<Cancellation::Hook> stream_hook_;
  std::optional<Cancellation::Hook> outer_hook_;
};

}  // namespace

std::unique_ptr<EventReader> MakeResumingEventReader(EvaluationStub* stub,
                                                     const v1::WatchEvalJobRequest& request,
                                                     const ConnectionOptions& options) {
  return std::make_unique<ResumingEventReader>(stub, request, options);
}

}  // namespace hopscope::client
