#include "common/checkpoint/shard_index.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/strict_json.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {
namespace {

constexpr size_t kMaxShards = 4096;
constexpr size_t kMaxFileName = 255;

absl::Status BadIndex(absl::string_view message) {
  return BrokenCheckpoint("CHECKPOINT_INDEX",
                          absl::StrCat("model.safetensors.index.json: ", message));
}

bool IsPlainFileName(absl::string_view name) {
  // No hidden names either: the model root does not look at them when it checks where links lead.
  return !name.empty() && name.size() <= kMaxFileName && name[0] != '.' &&
         name.find('/') == absl::string_view::npos && name.find('\0') == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> parsed = ParseStrictJson(text, /*max_depth=*/8);
  if (!parsed.ok()) return BadIndex(parsed.status().message());
  if (!parsed->is_object()) return BadIndex("must be an object");
  const auto map = parsed->find("weight_map");
  if (map == parsed->end() || !map->is_object()) {
    return BadIndex("weight_map must be an object of tensor names and files");
  }
  if (map->empty()) return BadIndex("weight_map names no tensor");
  ShardIndex index;
  for (const auto& [tensor, file] : map->items()) {
    const auto* name = file.get_ptr<const std::string*>();
    if (name == nullptr) {
      return BadIndex(absl::StrCat("weight_map: the file of ", Quoted(tensor),
                                   " must be a string, not of type ", file.type_name()));
    }
    if (!IsPlainFileName(*name)) {
      return BadIndex(absl::StrCat("weight_map: ", Quoted(*name),
                                   " is not the plain name of a file in the same folder"));
    }
    index.file_of_tensor[tensor] = *name;
    index.files.insert(*name);
    if (index.files.size() > kMaxShards) {
      return BadIndex(absl::StrCat("weight_map names more than ", kMaxShards, " files"));
    }
  }
  return index;
}

}  // namespace hopscope::checkpoint
