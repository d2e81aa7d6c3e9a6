// Where each uploaded sequence stands in its upload, how long it is, and which vocabulary it needs:
// all that planning and reading need to know without the sequences.
//
// A plain value; reading it is thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_TOKENS_INDEX_H_
#define HOPSCOPE_SERVER_JOBS_TOKENS_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tokens/tokens_file.h"

namespace hopscope::jobs {

struct TokensIndex {
  struct Entry {
    int64_t offset = 0;  // of the line's first byte
    int32_t bytes = 0;   // of the line, without its end
    int32_t line = 0;    // number of the line, from 1
    int32_t tokens = 0;  // of the sequence
    int32_t max_id = 0;  // largest token id, of the label too
  };
  std::vector<Entry> entries;  // by item

  void Add(const tokens::TokensLine& line);

  // As bytes, the same on every machine; DATA_LOSS where they are none of Write's.
  std::string Write() const;
  static absl::StatusOr<TokensIndex> Read(absl::string_view bytes);
};

// What whoever asks for sequences that are not there is told: NOT_FOUND with reason
// TOKENS_NOT_FOUND, the field and the digest.
absl::Status TokensNotFound(const std::string& digest, absl::string_view field);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_TOKENS_INDEX_H_
