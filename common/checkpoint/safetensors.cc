#include "common/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/strict_json.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {
namespace {

using nlohmann::json;

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr uint64_t kLengthBytes = 8;

uint64_t LoadLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// Takes the header apart without building a document: a document would hide duplicate names, and be
// many times as big.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  SafetensorsHeader header;

  const absl::Status& status() const { return status_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(int64_t) override { return Unexpected("a negative number"); }
  bool number_float(double, const std::string& text) override {
    return Unexpected(absl::StrCat("the number ", Quoted(text)));
  }
  bool binary(json::binary_t&) override { return Unexpected("a binary value"); }

  bool number_unsigned(uint64_t value) override {
    if (state_ == State::kShape) {
      if (shape().size() == kMaxTensorRank) {
        return Fail("CHECKPOINT_SHAPE", absl::StrCat("tensor ", Quoted(name_), " has more than ",
                                                     kMaxTensorRank, " dimensions"));
      }
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Fail("CHECKPOINT_SHAPE",
                    absl::StrCat("tensor ", Quoted(name_), " has a dimension of ", value));
      }
      shape().push_back(static_cast<int64_t>(value));
      return true;
    }
    if (state_ == State::kOffsets && offsets_ < 2) {
      (offsets_ == 0 ? header.tensors.back().begin : header.tensors.back().end) = value;
      ++offsets_;
      return true;
    }
    return Unexpected(absl::StrCat("the number ", value));
  }

  bool string(std::string& value) override {
    if (state_ == State::kMetadata) {
      header.metadata[field_] = std::move(value);
      return true;
    }
    if (state_ == State::kTensor && field_ == "dtype") {
      const StoredDtype* dtype = FindStoredDtype(value);
      if (dtype == nullptr) {
        return Fail("CHECKPOINT_DTYPE",
                    absl::StrCat("tensor ", Quoted(name_), " has dtype ", Quoted(value),
                                 ", which safetensors does not define"));
      }
      header.tensors.back().dtype = dtype;
      return true;
    }
    return Unexpected("a string");
  }

  bool start_object(size_t) override {
    switch (state_) {
      case State::kStart:
        state_ = State::kRoot;
        return true;
      case State::kRoot:
        if (name_ == kMetadataKey) {
          state_ = State::kMetadata;
          return true;
        }
        header.tensors.emplace_back().name = name_;
        has_dtype_ = has_shape_ = has_offsets_ = false;
        offsets_ = 0;
        state_ = State::kTensor;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::kTensor && !(has_dtype_ && has_shape_ && has_offsets_)) {
      return Fail("CHECKPOINT_HEADER_INVALID", absl::StrCat("tensor ", Quoted(name_), " lacks its ",
                                                            !has_dtype_   ? "dtype"
                                                            : !has_shape_ ? "shape"
                                                                          : "data_offsets"));
    }
    state_ = state_ == State::kRoot ? State::kEnd : State::kRoot;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ == State::kTensor && field_ == "shape") {
      state_ = State::kShape;
      return true;
    }
    if (state_ == State::kTensor && field_ == "data_offsets") {
      state_ = State::kOffsets;
      return true;
    }
    return Unexpected("an array");
  }

  bool end_array() override {
    if (state_ == State::kOffsets && offsets_ != 2) return Unexpected("a shorter array");
    state_ = State::kTensor;
    return true;
  }

  bool key(std::string& value) override {
    switch (state_) {
      case State::kRoot:
        name_ = std::move(value);
        if (!names_.insert(name_).second) {
          return Fail("CHECKPOINT_DUPLICATE_TENSOR",
                      absl::StrCat("tensor ", Quoted(name_), " stands twice in the header"));
        }
        return true;
      case State::kMetadata:
        field_ = std::move(value);
        if (header.metadata.contains(field_)) {
          return Fail("CHECKPOINT_HEADER_INVALID",
                      absl::StrCat("metadata key ", Quoted(field_), " stands twice"));
        }
        return true;
      default: {
        field_ = std::move(value);
        bool* seen = field_ == "dtype"          ? &has_dtype_
                     : field_ == "shape"        ? &has_shape_
                     : field_ == "data_offsets" ? &has_offsets_
                                                : nullptr;
        if (seen == nullptr || *seen) {
          return Fail(
              "CHECKPOINT_HEADER_INVALID",
              absl::StrCat("tensor ", Quoted(name_), " has ",
                           seen == nullptr ? "an unknown field " : "two fields ", Quoted(field_)));
        }
        *seen = true;
        return true;
      }
    }
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    return Fail("CHECKPOINT_HEADER_NOT_JSON",
                absl::StrCat("the header is not JSON: ", JsonSyntaxError(position, error)));
  }

 private:
  enum class State { kStart, kRoot, kMetadata, kTensor, kShape, kOffsets, kEnd };

  std::vector<int64_t>& shape() { return header.tensors.back().shape; }

  bool Fail(absl::string_view reason, absl::string_view message) {
    status_ = BrokenCheckpoint(reason, message);
    return false;
  }

  bool Unexpected(absl::string_view what) {
    std::string where = "the header";
    std::string wanted = "must be an object of tensors";
    switch (state_) {
      case State::kStart:
      case State::kEnd:
        break;
      case State::kRoot:
        where = Quoted(name_);
        wanted = "must be an object";
        break;
      case State::kMetadata:
        where = absl::StrCat("__metadata__ ", Quoted(field_));
        wanted = "must be a string";
        break;
      case State::kTensor:
        where = absl::StrCat(Quoted(field_), " of tensor ", Quoted(name_));
        wanted = field_ == "dtype" ? "must be a string" : "must be an array";
        break;
      case State::kShape:
        where = absl::StrCat("the shape of tensor ", Quoted(name_));
        wanted = "must hold non-negative integers";
        break;
      case State::kOffsets:
        where = absl::StrCat("the data_offsets of tensor ", Quoted(name_));
        wanted = "must be two non-negative integers";
        break;
    }
    return Fail("CHECKPOINT_HEADER_INVALID", absl::StrCat(where, " ", wanted, ", not ", what));
  }

  State state_ = State::kStart;
  std::string name_;
  std::string field_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int offsets_ = 0;
  absl::flat_hash_set<std::string> names_;
  absl::Status status_;
};

// Bytes that a tensor of that shape and type takes.
absl::StatusOr<uint64_t> TensorBytes(const TensorEntry& tensor) {
  uint64_t bits = static_cast<uint64_t>(tensor.dtype->bits);
  for (const int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) {
      return BrokenCheckpoint(
          "CHECKPOINT_SHAPE",
          absl::StrCat("tensor ", Quoted(tensor.name), " has more bits than 64 bits can count"));
    }
  }
  if (bits % 8 != 0) {
    return BrokenCheckpoint("CHECKPOINT_SHAPE",
                            absl::StrCat("tensor ", Quoted(tensor.name), " of dtype ",
                                         tensor.dtype->name, " does not fill whole bytes"));
  }
  return bits / 8;
}

// Sorts by offset and checks that the tensors tile [0, data_size).
absl::Status CheckOffsets(uint64_t data_size, std::vector<TensorEntry>* tensors) {
  for (const TensorEntry& tensor : *tensors) {
    absl::StatusOr<uint64_t> bytes = TensorBytes(tensor);
    if (!bytes.ok()) return bytes.status();
    if (tensor.end < tensor.begin || tensor.end - tensor.begin != *bytes) {
      return BrokenCheckpoint(
          "CHECKPOINT_OFFSETS",
          absl::StrCat("tensor ", Quoted(tensor.name), " has offsets ", tensor.begin, " to ",
                       tensor.end, ", but its shape and dtype take ", *bytes, " bytes"));
    }
  }
  std::stable_sort(tensors->begin(), tensors->end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  uint64_t expected = 0;
  for (const TensorEntry& tensor : *tensors) {
    if (tensor.begin != expected) {
      return BrokenCheckpoint(
          "CHECKPOINT_OFFSETS",
          absl::StrCat("tensor ", Quoted(tensor.name), " begins at ", tensor.begin, ", ",
                       tensor.begin < expected ? "inside" : "away from",
                       " its predecessor, which ends at ", expected));
    }
    expected = tensor.end;
  }
  if (expected > data_size) {
    return BrokenCheckpoint("CHECKPOINT_TRUNCATED",
                            absl::StrCat("the file is truncated: its tensors take ", expected,
                                         " bytes, but only ", data_size, " follow the header"));
  }
  if (expected < data_size) {
    return BrokenCheckpoint("CHECKPOINT_TRAILING_BYTES",
                            absl::StrCat(data_size - expected, " bytes follow the last tensor"));
  }
  return absl::OkStatus();
}

}  // namespace

const StoredDtype* FindStoredDtype(absl::string_view name) {
  static constexpr StoredDtype kDtypes[] = {
      {"F32", 32, TensorDtype::kF32},   {"F16", 16, TensorDtype::kF16},
      {"BF16", 16, TensorDtype::kBF16}, {"F64", 64, TensorDtype::kF64},
      {"BOOL", 8, std::nullopt},        {"U8", 8, std::nullopt},
      {"I8", 8, std::nullopt},          {"I16", 16, std::nullopt},
      {"U16", 16, std::nullopt},        {"I32", 32, std::nullopt},
      {"U32", 32, std::nullopt},        {"I64", 64, std::nullopt},
      {"U64", 64, std::nullopt},        {"C64", 64, std::nullopt},
      {"F8_E4M3", 8, std::nullopt},     {"F8_E5M2", 8, std::nullopt},
      {"F8_E8M0", 8, std::nullopt},     {"F8_E4M3FNUZ", 8, std::nullopt},
      {"F8_E5M2FNUZ", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
      {"F6_E3M2", 6, std::nullopt},     {"F4", 4, std::nullopt},
  };
  for (const StoredDtype& dtype : kDtypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view bytes,
                                                         uint64_t file_size) {
  if (file_size < kLengthBytes || bytes.size() < kLengthBytes) {
    return BrokenCheckpoint("CHECKPOINT_TRUNCATED",
                            absl::StrCat("the file is truncated: it has ", file_size,
                                         " bytes, less than the 8 of its header's length"));
  }
  const uint64_t length = LoadLittleEndian(bytes.substr(0, kLengthBytes));
  if (length > kMaxSafetensorsHeader) {
    return BrokenCheckpoint(
        "CHECKPOINT_HEADER_TOO_LARGE",
        absl::StrCat("the header claims ", length, " bytes; at most 100,000,000 are allowed"));
  }
  if (length > file_size - kLengthBytes || length > bytes.size() - kLengthBytes) {
    return BrokenCheckpoint("CHECKPOINT_TRUNCATED",
                            absl::StrCat("the file is truncated: its header claims ", length,
                                         " bytes, but the file has ", file_size));
  }
  const absl::string_view text = bytes.substr(kLengthBytes, length);
  if (!IsUtf8(text)) {
    return BrokenCheckpoint("CHECKPOINT_HEADER_NOT_UTF8", "the header is not UTF-8");
  }
  if (const absl::Status status = CheckJsonText(text); !status.ok()) {
    return BrokenCheckpoint("CHECKPOINT_HEADER_NOT_JSON",
                            absl::StrCat("the header is not JSON: ", status.message()));
  }
  HeaderHandler handler;
  if (!json::sax_parse(text.begin(), text.end(), &handler)) return handler.status();
  SafetensorsHeader header = std::move(handler.header);
  header.data_start = kLengthBytes + length;
  if (absl::Status status = CheckOffsets(file_size - header.data_start, &header.tensors);
      !status.ok()) {
    return status;
  }
  return header;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, absl::string_view name) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    const std::string message = absl::StrCat(name, ": ", std::strerror(error));
    if (error == ENOENT || error == ENOTDIR) return MissingFile("CHECKPOINT_MISSING_FILE", message);
    return BrokenCheckpoint("CHECKPOINT_UNREADABLE", message);
  }
  struct stat stat_buffer = {};
  std::string problem;
  void* address = nullptr;
  size_t size = 0;
  if (fstat(fd, &stat_buffer) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(stat_buffer.st_mode)) {
    problem = "not a regular file";
  } else if (size = static_cast<size_t>(stat_buffer.st_size); size > 0) {
    address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) problem = std::strerror(errno);
  }
  close(fd);
  if (!problem.empty()) {
    return BrokenCheckpoint("CHECKPOINT_UNREADABLE", absl::StrCat(name, ": ", problem));
  }
  return MappedFile(absl::string_view(static_cast<const char*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, absl::string_view())) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace hopscope::checkpoint
