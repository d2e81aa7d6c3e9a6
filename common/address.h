// Addresses to listen on, as flags give them.
#ifndef HOPSCOPE_COMMON_ADDRESS_H_
#define HOPSCOPE_COMMON_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::common {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address; never empty
  int port = 0;      // 0: the system chooses one

  // "HOST:PORT", with brackets around an IPv6 address.
  std::string ToString() const;
};

// Reads HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in brackets.
// INVALID_ARGUMENT names `flag` as the field.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view flag, absl::string_view text);

// True where only this machine can reach the host: "localhost", 127.0.0.0/8, ::1. Names are not
// looked up.
bool IsLoopback(absl::string_view host);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_ADDRESS_H_
