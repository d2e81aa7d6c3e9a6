#include "worker/engine/evaluation.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "common/mutex.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Rows (tokens of all sequences) of a micro-batch: enough for matrix products to run at full rate,
// few enough for the buffers of a small model to stay in a core's cache.
constexpr int64_t kCpuRows = 272;

// A CUDA device wants far more at once.
constexpr int64_t kCudaRows = 16'384;

// Bytes that the buffers of a micro-batch may take, as far as one sequence leaves a choice.
constexpr int64_t kCpuBufferBytes = int64_t{256} << 20;
constexpr int64_t kCudaBufferBytes = int64_t{4} << 30;

// Shows a pass to all scorers, and measures how long each takes.
class FanOut : public ForwardObserver {
 public:
  explicit FanOut(std::vector<std::unique_ptr<BatchScorer>> scorers)
      : scorers_(std::move(scorers)), seconds_(scorers_.size(), 0) {
    for (const auto& scorer : scorers_) {
      const Interest interest = scorer->interest();
      interest_.residual |= interest.residual;
      interest_.projections |= interest.projections;
      interest_.attention |= interest.attention;
      interest_.attended |= interest.attended;
    }
  }

  Interest interest() const override { return interest_; }

  void OnResidual(int64_t layer, const MatrixView& rows) override {
    ForEach([](const Interest& i) { return i.residual; },
            [&](BatchScorer& scorer) { scorer.OnResidual(layer, rows); });
  }
  void OnProjections(const LayerProjections& projections) override {
    ForEach([](const Interest& i) { return i.projections; },
            [&](BatchScorer& scorer) { scorer.OnProjections(projections); });
  }
  void OnAttention(const AttentionWeights& attention) override {
    ForEach([](const Interest& i) { return i.attention; },
            [&](BatchScorer& scorer) { scorer.OnAttention(attention); });
  }
  void OnAttended(int64_t layer, int64_t first_query, const MatrixView& rows) override {
    ForEach([](const Interest& i) { return i.attended; },
            [&](BatchScorer& scorer) { scorer.OnAttended(layer, first_query, rows); });
  }
  void OnLogits(const MatrixView& logits) {
    ForEach([](const Interest&) { return true; },
            [&](BatchScorer& scorer) { scorer.OnLogits(logits); });
  }

  absl::Status error() const {
    for (const auto& scorer : scorers_) HOPSCOPE_RETURN_IF_ERROR(scorer->error());
    return absl::OkStatus();
  }

  const std::vector<double>& seconds() const { return seconds_; }

 private:
  template <typename Wants, typename Show>
  void ForEach(Wants wants, Show show) {
    for (size_t i = 0; i < scorers_.size(); ++i) {
      if (!wants(scorers_[i]->interest())) continue;
      const SteadyClock::time_point start = SteadyClock::now();
      show(*scorers_[i]);
      seconds_[i] += SecondsSince(start);
    }
  }

  const std::vector<std::unique_ptr<BatchScorer>> scorers_;
  std::vector<double> seconds_;
  Interest interest_;
};

// What the threads that work on one evaluation share.
class Progress {
 public:
  Progress(int64_t batches, const std::vector<Scorer*>& scorers) : open_(batches) {
    for (const Scorer* scorer : scorers) totals_.score_seconds.emplace_back(scorer->name(), 0);
  }

  bool failed() {
    common::MutexLock lock(&mutex_);
    return !status_.ok();
  }

  // The error of the first batch that has one stays.
  void Done(int64_t batch, absl::Status status) {
    common::MutexLock lock(&mutex_);
    if (!status.ok() && (status_.ok() || batch < failed_batch_)) {
      status_ = std::move(status);
      failed_batch_ = batch;
    }
    if (--open_ == 0) changed_.SignalAll();
  }

  void Count(int64_t sequences, int64_t tokens, double seconds,
             const std::vector<double>& score_seconds) {
    common::MutexLock lock(&mutex_);
    totals_.sequences += sequences;
    totals_.tokens += sequences * tokens;
    totals_.forward_seconds += seconds;
    for (size_t i = 0; i < score_seconds.size(); ++i) {
      totals_.score_seconds[i].second += score_seconds[i];
      totals_.forward_seconds -= score_seconds[i];
    }
  }

  absl::Status Wait() {
    common::MutexLock lock(&mutex_);
    while (open_ > 0) changed_.Wait(&mutex_);
    return status_;
  }

  RunStatistics totals() {
    common::MutexLock lock(&mutex_);
    return totals_;
  }

 private:
  common::Mutex mutex_;
  common::CondVar changed_;
  int64_t open_ ABSL_GUARDED_BY(mutex_);
  int64_t failed_batch_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  RunStatistics totals_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Cancelled() { return absl::CancelledError("the unit was cancelled"); }

absl::Status RunBatch(const Evaluation& evaluation, absl::Span<const int64_t> items,
                      ForwardPass& pass, Progress& progress) {
  if (evaluation.cancel != nullptr && evaluation.cancel->cancelled()) return Cancelled();
  absl::StatusOr<std::vector<Sequence>> sequences = evaluation.source->Make(items);
  if (!sequences.ok()) return std::move(sequences).status();
  const int64_t count = static_cast<int64_t>(sequences->size());
  const int64_t tokens = static_cast<int64_t>(sequences->front().tokens.size());
  std::vector<int32_t> ids;
  ids.reserve(count * tokens);
  for (const Sequence& sequence : *sequences) {
    ids.insert(ids.end(), sequence.tokens.begin(), sequence.tokens.end());
  }

  bool all_queries = false;
  std::vector<std::unique_ptr<BatchScorer>> scorers;
  for (Scorer* scorer : evaluation.scorers) {
    all_queries = all_queries || scorer->NeedsAllQueries();
    scorers.push_back(scorer->StartBatch({.model = evaluation.model,
                                          .sequences = *sequences,
                                          .items = items,
                                          .cancel = evaluation.cancel}));
  }
  FanOut fan_out(std::move(scorers));
  const SteadyClock::time_point start = SteadyClock::now();
  absl::StatusOr<MatrixView> logits = pass.Run(*evaluation.model, {.sequences = count,
                                                                   .tokens = tokens,
                                                                   .ids = ids.data(),
                                                                   .all_queries = all_queries,
                                                                   .observer = &fan_out,
                                                                   .cancel = evaluation.cancel});
  if (!logits.ok()) return std::move(logits).status();
  fan_out.OnLogits(*logits);
  HOPSCOPE_RETURN_IF_ERROR(fan_out.error());
  // A scorer that saw the flag may have stopped anywhere.
  if (evaluation.cancel != nullptr && evaluation.cancel->cancelled()) return Cancelled();
  progress.Count(count, tokens, SecondsSince(start), fan_out.seconds());
  return absl::OkStatus();
}

}  // namespace

int64_t MicroBatchSize(const checkpoint::Architecture& architecture, const Device& device,
                       int64_t tokens) {
  const int64_t by_rows = (device.cuda ? kCudaRows : kCpuRows) / tokens;
  const int64_t by_memory = (device.cuda ? kCudaBufferBytes : kCpuBufferBytes) /
                            ForwardPass::BufferBytes(architecture, tokens);
  return std::max<int64_t>(1, std::min(by_rows, by_memory));
}

std::vector<std::vector<int64_t>> PlanMicroBatches(const checkpoint::Architecture& architecture,
                                                   const Device& device,
                                                   const SequenceSource& source) {
  std::map<int64_t, std::vector<int64_t>> by_length;
  for (int64_t item = 0; item < source.items(); ++item) {
    by_length[source.tokens(item)].push_back(item);
  }
  std::vector<std::vector<int64_t>> batches;
  for (const auto& [tokens, items] : by_length) {
    const size_t size = static_cast<size_t>(MicroBatchSize(architecture, device, tokens));
    for (size_t first = 0; first < items.size(); first += size) {
      batches.emplace_back(items.begin() + first,
                           items.begin() + std::min(first + size, items.size()));
    }
  }
  return batches;
}

absl::Status Evaluate(const Evaluation& evaluation, ComputePool* pool, RunStatistics* statistics) {
  const std::vector<std::vector<int64_t>> batches = PlanMicroBatches(
      evaluation.model->architecture(), evaluation.model->device(), *evaluation.source);
  Progress progress(static_cast<int64_t>(batches.size()), evaluation.scorers);
  for (size_t i = 0; i < batches.size(); ++i) {
    pool->Submit([&, i](ForwardPass& pass) {
      progress.Done(
          static_cast<int64_t>(i),
          progress.failed() ? absl::OkStatus() : RunBatch(evaluation, batches[i], pass, progress));
    });
  }
  const absl::Status status = progress.Wait();
  if (statistics != nullptr) {
    const RunStatistics totals = progress.totals();
    statistics->sequences += totals.sequences;
    statistics->tokens += totals.tokens;
    statistics->forward_seconds += totals.forward_seconds;
    for (const auto& score : totals.score_seconds) statistics->score_seconds.push_back(score);
  }
  return status;
}

}  // namespace hopscope::engine
