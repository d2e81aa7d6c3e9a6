#include "common/ops/http_get.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hopscope::ops {

HttpAnswer HttpRequest(const common::HostPort& address, absl::string_view method,
                       absl::string_view path) {
  HttpAnswer answer;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found) != 0) {
    return answer;
  }
  const int fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  std::string all;
  if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
    const std::string request =
        absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: ", address.ToString(), "\r\n\r\n");
    if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) all.append(buffer, n);
    }
  }
  close(fd);
  freeaddrinfo(found);
  const size_t split = all.find("\r\n\r\n");
  if (split == std::string::npos || all.size() < 12) return answer;
  answer.head = all.substr(0, split);
  answer.body = all.substr(split + 4);
  if (!absl::SimpleAtoi(all.substr(9, 3), &answer.code)) answer.code = 0;
  return answer;
}

}  // namespace hopscope::ops
