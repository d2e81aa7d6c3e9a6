// What is wrong with a command line, as all programs say it.
#ifndef HOPSCOPE_COMMON_COMMAND_LINE_H_
#define HOPSCOPE_COMMON_COMMAND_LINE_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hopscope::common {

// The text of an error that app.parse() threw. CLI11 lists arguments that nobody expected last
// first; here they stand as they were typed.
inline std::string CommandLineErrorText(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return error.what();
  return absl::StrCat("not expected: ", absl::StrJoin(app.remaining(/*recurse=*/true), " "));
}

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_COMMAND_LINE_H_
