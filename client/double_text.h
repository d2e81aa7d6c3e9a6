// Numbers as text that reads back as the same number.
#ifndef HOPSCOPE_CLIENT_DOUBLE_TEXT_H_
#define HOPSCOPE_CLIENT_DOUBLE_TEXT_H_

#include <string>

namespace hopscope::client {

// The shortest decimal text that reads back as exactly `value`, valid in JSON and YAML: "0.1",
// "1e-04", "42". `value` is finite.
std::string DoubleText(double value);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_DOUBLE_TEXT_H_
