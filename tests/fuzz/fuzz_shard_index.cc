// Input: the text of a model.safetensors.index.json.
#include <cstdint>
#include <string>

#include "common/checkpoint/shard_index.h"
#include "common/status.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = hopscope::checkpoint::ParseShardIndex(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!index.ok()) {
    HOPSCOPE_REQUIRE(hopscope::common::ErrorReason(index.status()) == "CHECKPOINT_INDEX");
    HOPSCOPE_REQUIRE(index.status().message().size() < 2000);
    return 0;
  }
  HOPSCOPE_REQUIRE(!index->files.empty());
  for (const auto& [tensor, file] : index->file_of_tensor) {
    HOPSCOPE_REQUIRE(index->files.contains(file));
    HOPSCOPE_REQUIRE(!file.empty() && file[0] != '.' && file.find('/') == std::string::npos);
  }
  return 0;
}
