#include "common/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hopscope::common {
namespace {

EVP_MD_CTX* Context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ok_ = context_ != nullptr && EVP_DigestInit_ex(Context(context_), EVP_sha256(), nullptr) == 1;
}

Sha256::~Sha256() { EVP_MD_CTX_free(Context(context_)); }

void Sha256::Update(const void* bytes, size_t size) {
  ok_ = ok_ && EVP_DigestUpdate(Context(context_), bytes, size) == 1;
}

void Sha256::UpdateLength(uint64_t length) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(length >> (8 * i));
  Update(bytes, sizeof(bytes));
}

absl::StatusOr<std::string> Sha256::Finish() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ok_ = ok_ && EVP_DigestFinal_ex(Context(context_), hash, &size) == 1;
  if (!ok_) return absl::InternalError("OpenSSL could not compute SHA-256");
  return absl::StrCat("sha256:", absl::BytesToHexString(
                                     absl::string_view(reinterpret_cast<const char*>(hash), size)));
}

}  // namespace hopscope::common
