// Which files make up a checkpoint folder: config.json, and model.safetensors or the shards that
// its index names.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_FOLDER_H_
#define HOPSCOPE_COMMON_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/shard_index.h"

namespace hopscope::checkpoint {

inline constexpr absl::string_view kConfigFile = "config.json";
inline constexpr absl::string_view kWeightFile = "model.safetensors";
inline constexpr absl::string_view kIndexFile = "model.safetensors.index.json";

struct CheckpointFolder {
  std::string path;
  std::vector<std::string> weight_files;  // base names in byte order
  std::optional<ShardIndex> index;        // set where the weights lie in several files

  // config.json and the weight files in byte order: what a digest covers.
  std::vector<std::string> digest_files() const;
};

// Looks at the folder and reads its index, where it has one; a model.safetensors beside an index
// wins, as in Hugging Face transformers.
//
// NOT_FOUND: CHECKPOINT_NOT_FOUND (no such folder), CHECKPOINT_MISSING_CONFIG,
// CHECKPOINT_MISSING_WEIGHTS. FAILED_PRECONDITION: CHECKPOINT_UNREADABLE, CHECKPOINT_INDEX.
absl::StatusOr<CheckpointFolder> ReadCheckpointFolder(const std::string& path);

// The content of a small file of the folder; FAILED_PRECONDITION with `too_large_reason` above
// `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& folder, absl::string_view name,
                                          uint64_t max_bytes, absl::string_view too_large_reason);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_FOLDER_H_
