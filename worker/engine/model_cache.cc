#include "worker/engine/model_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

// How often a thread that waits for another one's loading looks at its cancel flag.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);

absl::Status CheckpointError(const std::string& name, absl::string_view why) {
  return common::MakeError(absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
                           absl::StrCat("checkpoint ", name, ": ", why));
}

// Errors of reading keep their message; an attempt's reasons are coarser than a checkpoint's.
absl::Status AsCheckpointError(const std::string& name, const absl::Status& status) {
  return common::ErrorReason(status) == "OUT_OF_MEMORY" ? status
                                                        : CheckpointError(name, status.message());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Model>> ModelCache::Get(const v1::CheckpointRef& checkpoint,
                                                             v1::Dtype dtype,
                                                             const CancelFlag& cancel,
                                                             double* load_seconds) {
  if (load_seconds != nullptr) *load_seconds = 0;
  {
    common::MutexLock lock(&mutex_);
    while (true) {
      const auto found = Find(checkpoint.digest(), dtype);
      if (found == entries_.end()) break;
      if (found->model != nullptr) {
        entries_.splice(entries_.begin(), entries_, found);
        return found->model;
      }
      if (cancel.cancelled()) return absl::CancelledError("the unit was cancelled");
      changed_.WaitWithTimeout(&mutex_, kCancelPoll);
    }
    entries_.push_front({.digest = checkpoint.digest(), .dtype = dtype});
  }

  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::shared_ptr<const Model>> model = Load(checkpoint, dtype);
  if (load_seconds != nullptr) {
    *load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  common::MutexLock lock(&mutex_);
  const auto entry = Find(checkpoint.digest(), dtype);
  if (model.ok()) {
    entry->model = *model;
    Shrink();
  } else {
    entries_.erase(entry);
  }
  changed_.SignalAll();
  return model;
}

absl::StatusOr<std::shared_ptr<const Model>> ModelCache::Load(const v1::CheckpointRef& checkpoint,
                                                              v1::Dtype dtype) const {
  const std::string& name = checkpoint.name();
  const auto verify = [&]() -> absl::Status {
    absl::StatusOr<std::string> digest = options_.model_root->Digest(name);
    if (!digest.ok()) return AsCheckpointError(name, digest.status());
    if (*digest != checkpoint.digest()) {
      return CheckpointError(name, absl::StrCat("its files have changed since the job was planned: "
                                                "the plan says ",
                                                checkpoint.digest(), ", they are ", *digest));
    }
    return absl::OkStatus();
  };
  HOPSCOPE_RETURN_IF_ERROR(verify());
  absl::StatusOr<checkpoint::Checkpoint> opened = options_.model_root->OpenCheckpoint(name);
  if (!opened.ok()) return AsCheckpointError(name, opened.status());
  absl::StatusOr<std::shared_ptr<const Model>> model = Model::Load(*opened, dtype, options_.device);
  if (!model.ok()) return AsCheckpointError(name, model.status());
  HOPSCOPE_RETURN_IF_ERROR(verify());
  return model;
}

std::list<ModelCache::Entry>::iterator ModelCache::Find(const std::string& digest,
                                                        v1::Dtype dtype) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.digest == digest && entry.dtype == dtype;
  });
}

void ModelCache::Shrink() {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) {
    if (entry.model != nullptr) bytes += entry.model->weight_bytes();
  }
  for (auto entry = entries_.end(); entry != entries_.begin() && bytes > options_.bytes;) {
    --entry;
    // In use: somebody else holds it.
    if (entry->model == nullptr || entry->model.use_count() > 1) continue;
    bytes -= entry->model->weight_bytes();
    entry = entries_.erase(entry);
  }
}

std::vector<std::string> ModelCache::Digests() const {
  common::MutexLock lock(&mutex_);
  std::vector<std::string> digests;
  for (const Entry& entry : entries_) {
    if (entry.model != nullptr &&
        std::find(digests.begin(), digests.end(), entry.digest) == digests.end()) {
      digests.push_back(entry.digest);
    }
  }
  return digests;
}

int64_t ModelCache::LoadedBytes() const {
  common::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Entry& entry : entries_) {
    if (entry.model != nullptr) bytes += entry.model->weight_bytes();
  }
  return bytes;
}

}  // namespace hopscope::engine
