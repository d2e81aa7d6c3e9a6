// SHA-256 of bytes that come in pieces.
//
// Not thread-safe.
#ifndef HOPSCOPE_COMMON_SHA256_H_
#define HOPSCOPE_COMMON_SHA256_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hopscope::common {

class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void Update(const void* bytes, size_t size);
  // A length as 8 bytes, the lowest first.
  void UpdateLength(uint64_t length);

  // "sha256:" and 64 hex digits; once. INTERNAL where OpenSSL fails.
  absl::StatusOr<std::string> Finish();

 private:
  void* const context_;
  bool ok_ = false;
};

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_SHA256_H_
