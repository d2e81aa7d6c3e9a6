// Where an engine gets the sequences of task "tokens" from: the link reads them from the server.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_TOKENS_READER_H_
#define HOPSCOPE_WORKER_ENGINE_TOKENS_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tokens/tokens_file.h"

namespace hopscope::engine {

class CancelFlag;

class TokensReader {
 public:
  using Lines = std::shared_ptr<const std::vector<tokens::TokensLine>>;

  virtual ~TokensReader() = default;

  // Sequences first_item .. first_item + item_count - 1 of an upload. Blocks, for as long as the
  // server cannot be reached too; CANCELLED soon after the flag is set.
  virtual absl::StatusOr<Lines> Read(const std::string& digest, int64_t first_item,
                                     int64_t item_count, const CancelFlag& cancel) = 0;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TOKENS_READER_H_
