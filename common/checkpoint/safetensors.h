// The header of a safetensors file, parsed strictly, and read-only mapped files.
//
// Layout (https://github.com/huggingface/safetensors): an unsigned 64-bit little-endian N, N bytes
// of UTF-8 JSON, then the tensors' bytes. The JSON maps a name to {"dtype", "shape",
// "data_offsets": [begin, end)}, offsets relative to the end of the header; "__metadata__" is a map
// of strings. White space around the JSON is accepted.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_SAFETENSORS_H_
#define HOPSCOPE_COMMON_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"

namespace hopscope::checkpoint {

// Largest header that is read; the format's own limit.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

// Most dimensions of a tensor.
inline constexpr size_t kMaxTensorRank = 64;

// An element type of the format.
struct StoredDtype {
  absl::string_view name;
  int bits = 0;
  // Set where weights may have it; tensors of the other types are only skipped over.
  std::optional<TensorDtype> usable;
};

// The type of that name, or null.
const StoredDtype* FindStoredDtype(absl::string_view name);

struct TensorEntry {
  std::string name;
  const StoredDtype* dtype = nullptr;
  std::vector<int64_t> shape;  // [] is a scalar; sizes may be 0
  uint64_t begin = 0;          // bytes from the start of the data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  uint64_t data_start = 0;           // bytes from the start of the file
  std::vector<TensorEntry> tensors;  // in the order of their offsets
  std::map<std::string, std::string> metadata;
};

// Parses the header of a file of `file_size` bytes that begins with `bytes` (all of it, or at least
// its header). Allocates in proportion to the header, and nothing before its length has been
// checked.
//
// FAILED_PRECONDITION, with the reason in this order of checks:
//   CHECKPOINT_TRUNCATED          shorter than 8 bytes, than its header, or than the last tensor's
//   end CHECKPOINT_HEADER_TOO_LARGE   N above kMaxSafetensorsHeader CHECKPOINT_HEADER_NOT_UTF8
//   CHECKPOINT_HEADER_NOT_JSON
//   CHECKPOINT_HEADER_INVALID     JSON, but not of the layout above (unknown fields are refused as
//   well) CHECKPOINT_DUPLICATE_TENSOR   a name stands twice CHECKPOINT_DTYPE              a type
//   that the format does not have CHECKPOINT_SHAPE              too many dimensions, or more
//   elements or bytes than 64 bits can count CHECKPOINT_OFFSETS            end before begin, a
//   range of another size than the shape takes, a hole, an overlap CHECKPOINT_TRAILING_BYTES bytes
//   after the last tensor
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view bytes,
                                                         uint64_t file_size);

// A file mapped read-only. Move-only; the mapping lives as long as the object.
//
// If somebody truncates the file while it is mapped, reading the lost part raises SIGBUS, which no
// status can report: checkpoint folders must be replaced by renaming, never rewritten in place.
// Rewriting without truncation changes the bytes under the reader; what was verified is the digest
// at the time it was taken.
class MappedFile {
 public:
  // NOT_FOUND with CHECKPOINT_MISSING_FILE, FAILED_PRECONDITION with CHECKPOINT_UNREADABLE (no
  // permission, not a regular file, an I/O error). Messages call the file `name`.
  static absl::StatusOr<MappedFile> Open(const std::string& path, absl::string_view name);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes_;
};

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_SAFETENSORS_H_
