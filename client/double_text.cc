#include "client/double_text.h"

#include <charconv>

namespace hopscope::client {

std::string DoubleText(double value) {
  // 24 characters hold the longest, -2.2250738585072014e-308.
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

}  // namespace hopscope::client
