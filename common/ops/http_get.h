// A tiny HTTP client for tests of what OpsServer serves.
#ifndef HOPSCOPE_COMMON_OPS_HTTP_GET_H_
#define HOPSCOPE_COMMON_OPS_HTTP_GET_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/address.h"

namespace hopscope::ops {

struct HttpAnswer {
  int code = 0;  // 0: no answer
  std::string head;
  std::string body;
};

// Sends one request and reads until the server closes the connection.
HttpAnswer HttpRequest(const common::HostPort& address, absl::string_view method,
                       absl::string_view path);

inline HttpAnswer HttpGet(const common::HostPort& address, absl::string_view path) {
  return HttpRequest(address, "GET", path);
}

}  // namespace hopscope::ops

#endif  // HOPSCOPE_COMMON_OPS_HTTP_GET_H_
