#include "worker/engine/fake_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace hopscope::engine {
namespace {

// Weights that a loaded checkpoint pretends to take.
constexpr int64_t kCheckpointBytes = 10'000'000;
// A run looks at its cancel flag this often.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(5);
constexpr int kMaxItemFailures = 10;

// Bytes that are the same for equal messages, whatever the order of their maps.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// FNV-1a, over the length first, so that parts cannot run into each other.
uint64_t Hash(uint64_t hash, absl::string_view part) {
  constexpr uint64_t kPrime = 0x100000001b3;
  for (uint64_t length = part.size(), i = 0; i < 8; ++i) {
    hash = (hash ^ (length >> (8 * i) & 0xff)) * kPrime;
  }
  for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
  return hash;
}

// The finaliser of SplitMix64: a bijection that spreads each bit over all others.
uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// In [0, 1), by index of a sequence of independent values.
double Uniform(uint64_t hash, int64_t index) {
  return static_cast<double>(Mix(hash + 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(index) + 1)) >>
                             11) *
         0x1p-53;
}

// What the items of a unit's cell depend on.
uint64_t ContentHash(const std::string& kind, const v1::WorkUnit& unit) {
  uint64_t hash = 0xcbf29ce484222325;
  hash = Hash(hash, kind);
  hash = Hash(hash, Bytes(unit.sequences()));
  hash = Hash(hash, unit.checkpoint().digest());
  return Hash(hash, v1::Dtype_Name(unit.dtype()));
}

std::string DtypeName(v1::Dtype dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT64:
      return "float64";
    case v1::DTYPE_BFLOAT16:
      return "bfloat16";
    case v1::DTYPE_FLOAT16:
      return "float16";
    default:
      return "float32";
  }
}

absl::Status FailureOf(const std::string& reason) {
  const absl::StatusCode code = reason == "OUT_OF_MEMORY" ? absl::StatusCode::kResourceExhausted
                                : reason == "CHECKPOINT"  ? absl::StatusCode::kFailedPrecondition
                                                          : absl::StatusCode::kInternal;
  return common::MakeError(code, reason, "the fake engine was told to fail");
}

// Moments of one metric over the items that have a result.
v1::ScoreMoments Moments(uint64_t hash, int steps, int layers, int heads,
                         const std::vector<int64_t>& items) {
  v1::ScoreMoments moments;
  moments.set_steps(steps);
  moments.set_layers(layers);
  moments.set_heads(heads);
  const int64_t size = int64_t{std::max(steps, 1)} * std::max(layers, 1) * std::max(heads, 1);
  for (int64_t cell = 0; cell < size; ++cell) {
    const uint64_t head_hash = Mix(hash + static_cast<uint64_t>(cell));
    // Welford's recurrence.
    int64_t count = 0;
    double mean = 0;
    double m2 = 0;
    for (const int64_t item : items) {
      const double value = Uniform(head_hash, item);
      const double delta = value - mean;
      mean += delta / static_cast<double>(++count);
      m2 += delta * (value - mean);
    }
    moments.add_count(count);
    moments.add_mean(mean);
    moments.add_m2(m2);
  }
  return moments;
}

}  // namespace

FakeEngine::FakeEngine(Options options) : options_(std::move(options)) {}

void FakeEngine::Describe(v1::WorkerDescription* description) const {
  description->set_device("cpu");
  description->set_device_name("fake");
  description->set_memory_bytes(int64_t{1} << 30);
  for (const v1::Dtype dtype :
       {v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16}) {
    description->add_dtypes(dtype);
  }
  for (const std::string& family : options_.model_families) {
    description->add_model_families(family);
  }
  for (const v1::TaskCapability& task : spec::Tasks()) description->add_tasks(task.name());
  for (const v1::ScorerCapability& scorer : spec::Scorers())
    description->add_scorers(scorer.name());
  description->set_kind(options_.kind);
  description->set_capacity(options_.capacity);
  description->set_threads(1);
}

v1::UnitResult FakeEngine::Expected(const v1::WorkUnit& unit) const {
  return Compute(unit, nullptr);
}

v1::UnitResult FakeEngine::Compute(const v1::WorkUnit& unit,
                                   const std::vector<tokens::TokensLine>* lines) const {
  ItemPredicate failing_items;
  {
    common::MutexLock lock(&mutex_);
    failing_items = failing_items_;
  }
  v1::UnitResult result;
  result.set_kind(absl::StrCat(options_.kind, ", ", DtypeName(unit.dtype())));
  const uint64_t content = ContentHash(options_.kind, unit);
  const double accuracy = 0.25 + 0.75 * Uniform(Hash(content, "accuracy of the cell"), 0);
  const uint64_t answers = Hash(content, "answers");
  std::vector<int64_t> items;
  int64_t correct = 0;
  for (int64_t item = unit.first_item(); item < unit.first_item() + unit.item_count(); ++item) {
    if (failing_items && failing_items(unit, item)) {
      result.set_items_failed(result.items_failed() + 1);
      if (result.item_failures_size() < kMaxItemFailures) {
        v1::ItemFailure* failure = result.add_item_failures();
        failure->set_item(item);
        failure->mutable_failure()->set_reason("NUMERIC");
        failure->mutable_failure()->set_message("the fake engine was told to fail the item");
      }
      continue;
    }
    items.push_back(item);
    if (lines != nullptr && !(*lines)[item - unit.first_item()].label.has_value()) {
      result.set_items_unlabelled(result.items_unlabelled() + 1);
      continue;
    }
    correct += Uniform(answers, item) < accuracy;
  }
  result.set_items(static_cast<int64_t>(items.size()));
  result.set_correct(correct);
  for (const v1::ScorerSpec& scorer : unit.scorers()) {
    if (scorer.name() == "accuracy") continue;  // the counts above
    for (const google::protobuf::Struct& params : spec::ResultParams(scorer)) {
      for (const std::string& metric : spec::ResultMetrics(scorer)) {
        uint64_t hash = Hash(content, scorer.name());
        hash = Hash(Hash(hash, Bytes(params)), metric);
        v1::ScoreMoments* moments = result.add_scores();
        const bool per_head = spec::ScoresEachHead(scorer);
        *moments = Moments(
            hash,
            scorer.name() == spec::kAccuracyByPosition ? unit.sequences().window().target() : 0,
            per_head ? options_.layers : 0, per_head ? options_.heads : 0, items);
        moments->set_scorer(scorer.name());
        *moments->mutable_params() = params;
        moments->set_metric(metric);
      }
    }
  }
  return result;
}

absl::StatusOr<v1::UnitResult> FakeEngine::Run(const v1::WorkUnit& unit, const CancelFlag& cancel,
                                               RunStatistics* statistics) {
  for (const v1::ScorerSpec& scorer : unit.scorers()) {
    if (spec::FindScorer(scorer.name()) == nullptr) {
      return common::MakeError(absl::StatusCode::kInternal, "INTERNAL",
                               absl::StrCat("the engine has no scorer ", scorer.name()));
    }
  }
  std::string failure;
  {
    common::MutexLock lock(&mutex_);
    const int64_t run = ++runs_;
    if (running_ >= options_.capacity) {
      return common::MakeError(
          absl::StatusCode::kInternal, "INTERNAL",
          absl::StrCat("more than ", options_.capacity, " units at once, the engine's capacity"));
    }
    peak_runs_ = std::max(peak_runs_, ++running_);
    TouchCheckpoint(unit.checkpoint().digest());
    if (failing_runs_.count(run) != 0) {
      failure = failing_runs_.at(run);
    } else if (failing_units_ && failing_units_(unit)) {
      failure = failing_units_reason_;
    }
  }
  TokensReader::Lines lines;
  absl::Status status;
  if (unit.sequences().task() == spec::kTokensTask) {
    absl::StatusOr<TokensReader::Lines> read = ReadTokens(unit, cancel);
    if (read.ok()) lines = *std::move(read);
    status = read.status();
  }
  if (status.ok()) status = Wait(unit, cancel);
  {
    common::MutexLock lock(&mutex_);
    --running_;
  }
  if (status.ok() && !failure.empty()) status = FailureOf(failure);
  if (!status.ok()) return status;
  if (statistics != nullptr) {
    const v1::SequenceSpec& sequences = unit.sequences();
    const int64_t length = int64_t{sequences.added_tokens()} + sequences.window().target() +
                           sequences.window().pre_target() + 1;
    statistics->sequences = unit.item_count();
    statistics->tokens = unit.item_count() * length;
  }
  return Compute(unit, lines.get());
}

absl::Status FakeEngine::Wait(const v1::WorkUnit& unit, const CancelFlag& cancel) {
  const absl::Time ready =
      absl::Now() + options_.delay +
      options_.delay_per_item * static_cast<double>(std::max<int64_t>(0, unit.item_count()));
  common::MutexLock lock(&mutex_);
  bool held = false;
  absl::Status status;
  while (true) {
    if (cancel.cancelled()) {
      status =
          common::MakeError(absl::StatusCode::kCancelled, "CANCELLED", "the unit was cancelled");
      break;
    }
    const absl::Duration left = ready - absl::Now();
    if (left > absl::ZeroDuration()) {
      changed_.WaitWithTimeout(&mutex_, std::min(left, kCancelPoll));
      continue;
    }
    if (!holding_ || (held_units_ && !held_units_(unit))) break;
    if (releases_ > 0) {
      --releases_;
      break;
    }
    if (!held) {
      held = true;
      ++held_;
      changed_.SignalAll();
    }
    changed_.WaitWithTimeout(&mutex_, kCancelPoll);
  }
  if (held) {
    --held_;
    changed_.SignalAll();
  }
  return status;
}

void FakeEngine::TouchCheckpoint(const std::string& digest) {
  loaded_.remove(digest);
  loaded_.push_front(digest);
  while (loaded_.size() > static_cast<size_t>(std::max(1, options_.max_loaded))) loaded_.pop_back();
}

std::vector<std::string> FakeEngine::LoadedDigests() const {
  common::MutexLock lock(&mutex_);
  return {loaded_.begin(), loaded_.end()};
}

int64_t FakeEngine::LoadedBytes() const {
  common::MutexLock lock(&mutex_);
  return kCheckpointBytes * static_cast<int64_t>(loaded_.size());
}

bool FakeEngine::Healthy() const {
  common::MutexLock lock(&mutex_);
  return healthy_;
}

void FakeEngine::FailRun(int64_t run, const std::string& reason) {
  common::MutexLock lock(&mutex_);
  failing_runs_[run] = reason;
}

void FakeEngine::FailUnits(UnitPredicate which, const std::string& reason) {
  common::MutexLock lock(&mutex_);
  failing_units_ = std::move(which);
  failing_units_reason_ = reason;
}

void FakeEngine::FailItems(ItemPredicate which) {
  common::MutexLock lock(&mutex_);
  failing_items_ = std::move(which);
}

void FakeEngine::Hold(UnitPredicate which) {
  common::MutexLock lock(&mutex_);
  holding_ = true;
  held_units_ = std::move(which);
  releases_ = 0;
}

void FakeEngine::Release(int64_t count) {
  common::MutexLock lock(&mutex_);
  releases_ += count;
  changed_.SignalAll();
}

void FakeEngine::ReleaseAll() {
  common::MutexLock lock(&mutex_);
  holding_ = false;
  releases_ = 0;
  changed_.SignalAll();
}

bool FakeEngine::AwaitHeld(int count, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  common::MutexLock lock(&mutex_);
  while (held_ != count) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

void FakeEngine::SetHealthy(bool healthy) {
  common::MutexLock lock(&mutex_);
  healthy_ = healthy;
}

int64_t FakeEngine::runs() const {
  common::MutexLock lock(&mutex_);
  return runs_;
}

int FakeEngine::peak_runs() const {
  common::MutexLock lock(&mutex_);
  return peak_runs_;
}

}  // namespace hopscope::engine
