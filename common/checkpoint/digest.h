// The content digest of a checkpoint: SHA-256 over config.json and the weight files.
//
// What is hashed, for each of these files in the byte order of their names, one after another:
//   the length of the name,    unsigned 64-bit little-endian
//   the name                   (the base name, such as model-00001-of-00002.safetensors)
//   the length of the content, unsigned 64-bit little-endian
//   the content
// The digest is "sha256:" and 64 lower-case hex digits. A shard index is not part of it: it only
// says which files belong to the checkpoint, whose names are hashed, since no tensor may be in two
// of them.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_DIGEST_H_
#define HOPSCOPE_COMMON_CHECKPOINT_DIGEST_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace hopscope::checkpoint {

// Digests of folders, remembered.
//
// A digest is computed again when any of the files has another device, inode, size, mtime or ctime
// (in nanoseconds), or when the list of files changed. File systems stamp files with a coarse clock
// (some milliseconds), so a digest whose files changed less than kSettleTime before is given out
// but not remembered. Thread-safe; callers that ask for the same folder at once share one
// computation, different folders are hashed in parallel.
class DigestCache {
 public:
  static constexpr absl::Duration kSettleTime = absl::Seconds(2);

  // `clock` must outlive the cache.
  explicit DigestCache(const common::Clock* clock = common::Clock::Real()) : clock_(clock) {}

  // The digest of the checkpoint in folder `path`. Errors of ReadCheckpointFolder; NOT_FOUND with
  // CHECKPOINT_MISSING_FILE; FAILED_PRECONDITION with CHECKPOINT_UNREADABLE (an I/O error, no
  // permission) or CHECKPOINT_CHANGED (a file was written while it was read).
  absl::StatusOr<std::string> Digest(const std::string& path);

  // Bytes hashed so far; what was remembered costs none.
  int64_t bytes_hashed() const { return bytes_hashed_.load(); }

 private:
  struct Entry {
    common::Mutex mutex;
    std::string identity
        ABSL_GUARDED_BY(mutex);  // of the files that `digest` belongs to; empty: none
    std::string digest ABSL_GUARDED_BY(mutex);
  };

  const common::Clock* const clock_;
  std::atomic<int64_t> bytes_hashed_{0};
  common::Mutex mutex_;
  // By folder, so that the map does not grow with versions of a checkpoint.
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_DIGEST_H_
