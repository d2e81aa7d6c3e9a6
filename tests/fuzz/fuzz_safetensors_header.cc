// Input: 8 bytes with the file's claimed size, then its first bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "common/checkpoint/safetensors.h"
#include "common/status.h"
#include "tests/fuzz/require.h"

using hopscope::checkpoint::ParseSafetensorsHeader;
using hopscope::checkpoint::TensorEntry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 8) return 0;
  uint64_t file_size = 0;
  std::memcpy(&file_size, data, sizeof(file_size));
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 8, size - 8);
  file_size = std::max<uint64_t>(file_size, bytes.size());
  const auto header = ParseSafetensorsHeader(bytes, file_size);
  if (!header.ok()) {
    HOPSCOPE_REQUIRE(hopscope::common::GetErrorInfo(header.status()).has_value());
    HOPSCOPE_REQUIRE(header.status().message().size() < 2000);
    return 0;
  }
  // The tensors tile the data section exactly, and have names of their own.
  HOPSCOPE_REQUIRE(header->data_start <= file_size);
  uint64_t end = 0;
  std::set<std::string> names;
  for (const TensorEntry& tensor : header->tensors) {
    HOPSCOPE_REQUIRE(names.insert(tensor.name).second);
    HOPSCOPE_REQUIRE(tensor.begin == end);
    HOPSCOPE_REQUIRE(tensor.dtype != nullptr);
    // Exact even where 64 bits are not.
    unsigned __int128 bits = static_cast<unsigned __int128>(tensor.dtype->bits);
    bool empty = false;
    for (const int64_t dimension : tensor.shape) {
      HOPSCOPE_REQUIRE(dimension >= 0);
      empty = empty || dimension == 0;
    }
    for (const int64_t dimension : tensor.shape) {
      if (!empty) bits *= static_cast<unsigned __int128>(dimension);
      HOPSCOPE_REQUIRE(bits >> 64 == 0);
    }
    HOPSCOPE_REQUIRE(tensor.end - tensor.begin == (empty ? 0 : static_cast<uint64_t>(bits / 8)));
    end = tensor.end;
  }
  HOPSCOPE_REQUIRE(end == file_size - header->data_start);
  return 0;
}
