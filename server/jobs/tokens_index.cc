#include "server/jobs/tokens_index.h"

#include "absl/strings/str_cat.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::jobs {
namespace {

constexpr size_t kEntryBytes = 24;

// Lowest byte first.
template <typename Integer>
void Put(Integer value, std::string& bytes) {
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff));
  }
}

template <typename Integer>
Integer Take(absl::string_view& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  bytes.remove_prefix(sizeof(Integer));
  return static_cast<Integer>(value);
}

}  // namespace

void TokensIndex::Add(const tokens::TokensLine& line) {
  entries.push_back({.offset = line.offset,
                     .bytes = static_cast<int32_t>(line.bytes),
                     .line = static_cast<int32_t>(line.number),
                     .tokens = static_cast<int32_t>(line.tokens.size()),
                     .max_id = line.MaxId()});
}

std::string TokensIndex::Write() const {
  std::string bytes;
  bytes.reserve(entries.size() * kEntryBytes);
  for (const Entry& entry : entries) {
    Put(entry.offset, bytes);
    Put(entry.bytes, bytes);
    Put(entry.line, bytes);
    Put(entry.tokens, bytes);
    Put(entry.max_id, bytes);
  }
  return bytes;
}

absl::StatusOr<TokensIndex> TokensIndex::Read(absl::string_view bytes) {
  if (bytes.size() % kEntryBytes != 0) {
    return common::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                             "the store's file is damaged: unreadable index of sequences");
  }
  TokensIndex index;
  index.entries.reserve(bytes.size() / kEntryBytes);
  while (!bytes.empty()) {
    Entry& entry = index.entries.emplace_back();
    entry.offset = Take<int64_t>(bytes);
    entry.bytes = Take<int32_t>(bytes);
    entry.line = Take<int32_t>(bytes);
    entry.tokens = Take<int32_t>(bytes);
    entry.max_id = Take<int32_t>(bytes);
  }
  return index;
}

absl::Status TokensNotFound(const std::string& digest, absl::string_view field) {
  return common::MakeError(
      absl::StatusCode::kNotFound, "TOKENS_NOT_FOUND",
      absl::StrCat(field, ": no sequences with digest ", spec::Quoted(digest),
                   " were uploaded, or they are no longer kept; upload them again"),
      {{"field", std::string(field)}, {"value", digest}});
}

}  // namespace hopscope::jobs
