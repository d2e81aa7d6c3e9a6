// The `hopscope` command: finds the command that is meant, reads its options, and runs it.
#ifndef HOPSCOPE_CLIENT_CLI_APP_H_
#define HOPSCOPE_CLIENT_CLI_APP_H_

#include <string>
#include <vector>

#include "client/cli/environment.h"

namespace hopscope::cli {

// `arguments`: without the program's name. Returns an ExitCode.
int RunApp(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_APP_H_
