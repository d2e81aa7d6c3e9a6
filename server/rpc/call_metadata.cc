#include "server/rpc/call_metadata.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace hopscope::rpc {
namespace {

bool IsTenant(absl::string_view text) {
  if (text.empty() || text.size() > 63 || !absl::ascii_isalnum(text.front())) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

bool IsLowerHex(absl::string_view text, size_t size) {
  if (text.size() != size) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c) && (c < 'a' || c > 'f')) return false;
  }
  return true;
}

// version "-" trace id "-" parent id "-" flags, with neither id all zeros; later versions than 00
// may append parts.
bool IsTraceparent(absl::string_view text) {
  if (text.size() > 256) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  return parts.size() >= 4 && IsLowerHex(parts[0], 2) && parts[0] != "ff" &&
         IsLowerHex(parts[1], 32) && IsLowerHex(parts[2], 16) && IsLowerHex(parts[3], 2) &&
         parts[1].find_first_not_of('0') != absl::string_view::npos &&
         parts[2].find_first_not_of('0') != absl::string_view::npos &&
         (parts.size() == 4 || parts[0] != "00");
}

}  // namespace

absl::StatusOr<jobs::CallContext> ReadCallContext(const ClientMetadata& metadata) {
  jobs::CallContext context;
  const auto [first, last] = metadata.equal_range(kTenantKey);
  for (auto entry = first; entry != last; ++entry) {
    const absl::string_view tenant(entry->second.data(), entry->second.size());
    if (!IsTenant(tenant) || entry != first) {
      return common::InvalidField(
          "TENANT_INVALID", absl::StrCat("metadata ", kTenantKey),
          absl::StrCat("\"", absl::CHexEscape(tenant.substr(0, 64)), "\""),
          "give one name of 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit "
          "first");
    }
    context.tenant = std::string(tenant);
  }
  if (metadata.count(kTraceparentKey) == 1) {
    const grpc::string_ref value = metadata.find(kTraceparentKey)->second;
    const absl::string_view traceparent(value.data(), value.size());
    if (IsTraceparent(traceparent)) context.traceparent = std::string(traceparent);
  }
  return context;
}

}  // namespace hopscope::rpc
