// The version of all Hopscope programs: one number, set by CMake's project().
#ifndef HOPSCOPE_COMMON_VERSION_H_
#define HOPSCOPE_COMMON_VERSION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "hopscope/v1/dispatch.pb.h"

namespace hopscope::common {

// "MAJOR.MINOR.PATCH".
absl::string_view VersionString();

// The same as it travels between programs. Programs of different major versions do not work
// together.
v1::Version ProgramVersion();

// What `PROGRAM --version` prints: the program and version, and what it was built with and for.
std::string VersionText(absl::string_view program);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_VERSION_H_
