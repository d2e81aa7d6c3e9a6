#include "common/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::common {

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view flag, absl::string_view text) {
  const absl::Status error = InvalidField(
      "BAD_ADDRESS", flag, absl::StrCat("\"", text, "\""),
      "give HOST:PORT, such as 127.0.0.1:7070 or [::1]:7070, with a port of 0 to 65535");
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return error;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);

  HostPort result;
  result.host = std::string(host);
  if (host.empty() || bracketed != absl::StrContains(host, ':')) return error;
  if (bracketed) {
    in6_addr address;
    if (inet_pton(AF_INET6, result.host.c_str(), &address) != 1) return error;
  }
  for (const char c : host) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '_' && c != ':') return error;
  }
  // SimpleAtoi would take signs and spaces.
  for (const char c : port) {
    if (!absl::ascii_isdigit(c)) return error;
  }
  if (!absl::SimpleAtoi(port, &result.port) || result.port > 65535) return error;
  return result;
}

bool IsLoopback(absl::string_view host) {
  const std::string text(host);
  if (in_addr address; inet_pton(AF_INET, text.c_str(), &address) == 1) {
    return ntohl(address.s_addr) >> 24 == 127;
  }
  if (in6_addr address; inet_pton(AF_INET6, text.c_str(), &address) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&address);
  }
  return text == "localhost";
}

}  // namespace hopscope::common
