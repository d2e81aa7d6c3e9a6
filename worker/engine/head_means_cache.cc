#include "worker/engine/head_means_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/scorers/head_means.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {
namespace {

// How often a thread that waits for another one's computation looks at its cancel flag.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);

v1::SequenceSpec ForMeans(const v1::SequenceSpec& sequences) {
  v1::SequenceSpec validation = sequences;
  validation.set_split(v1::SPLIT_VALIDATION);
  return validation;
}

std::string KeyOf(const std::string& digest, const Model& model,
                  const v1::SequenceSpec& sequences) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    ForMeans(sequences).SerializeToCodedStream(&coded);
  }
  return absl::StrCat(digest, "/", model.dtype(), "/", bytes);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HeadMeans>> ComputeHeadMeans(const Model& model,
                                                                  const v1::SequenceSpec& sequences,
                                                                  const CancelFlag& cancel,
                                                                  ComputePool* pool) {
  HOPSCOPE_ASSIGN_OR_RETURN(const TaskSource source,
                            TaskSource::Create(ForMeans(sequences), 0, kHeadMeansItems));
  HeadMeansCollector collector(model.architecture(), source.tokens(0));
  HOPSCOPE_RETURN_IF_ERROR(Evaluate(
      {.model = &model, .source = &source, .scorers = {&collector}, .cancel = &cancel}, pool,
      /*statistics=*/nullptr));
  return std::make_shared<const HeadMeans>(collector.Finish());
}

absl::StatusOr<std::shared_ptr<const HeadMeans>> HeadMeansCache::Get(
    const std::string& digest, const Model& model, const v1::SequenceSpec& sequences,
    const CancelFlag& cancel, ComputePool* pool) {
  const std::string key = KeyOf(digest, model, sequences);
  {
    common::MutexLock lock(&mutex_);
    while (true) {
      const auto found = Find(key);
      if (found == entries_.end()) break;
      if (found->means != nullptr) {
        entries_.splice(entries_.begin(), entries_, found);
        return found->means;
      }
      if (cancel.cancelled()) return absl::CancelledError("the unit was cancelled");
      changed_.WaitWithTimeout(&mutex_, kCancelPoll);
    }
    entries_.push_front({.key = key});
  }
  absl::StatusOr<std::shared_ptr<const HeadMeans>> means =
      ComputeHeadMeans(model, sequences, cancel, pool);
  common::MutexLock lock(&mutex_);
  const auto entry = Find(key);
  if (means.ok()) {
    entry->means = *means;
    Shrink();
  } else {
    entries_.erase(entry);
  }
  changed_.SignalAll();
  return means;
}

std::list<HeadMeansCache::Entry>::iterator HeadMeansCache::Find(const std::string& key) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.key == key; });
}

void HeadMeansCache::Shrink() {
  int64_t kept = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->means != nullptr) kept += entry->means->bytes();
    const bool drop = entry->means != nullptr && kept > bytes_;
    if (drop) kept -= entry->means->bytes();
    entry = drop ? entries_.erase(entry) : std::next(entry);
  }
}

int64_t HeadMeansCache::KeptBytes() const {
  common::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Entry& entry : entries_) {
    if (entry.means != nullptr) bytes += entry.means->bytes();
  }
  return bytes;
}

}  // namespace hopscope::engine
