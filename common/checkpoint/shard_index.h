// model.safetensors.index.json: which file holds which tensor of a checkpoint that is stored in
// several.
//
// Only "weight_map" counts. metadata.total_size is not looked at: published files disagree on what
// it sums.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_SHARD_INDEX_H_
#define HOPSCOPE_COMMON_CHECKPOINT_SHARD_INDEX_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::checkpoint {

struct ShardIndex {
  std::map<std::string, std::string> file_of_tensor;
  std::set<std::string> files;  // at least one; base names, never a path
};

// FAILED_PRECONDITION with CHECKPOINT_INDEX: not JSON, not of this layout, no tensors, too many
// files, or a file name that is not a plain one in the same folder.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_SHARD_INDEX_H_
