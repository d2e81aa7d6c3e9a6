// What `watch` and `run` share.
#ifndef HOPSCOPE_CLIENT_CLI_WATCH_COMMAND_H_
#define HOPSCOPE_CLIENT_CLI_WATCH_COMMAND_H_

#include <memory>

#include "client/cli/console.h"
#include "client/cli/progress_view.h"
#include "common/clock.h"

namespace hopscope::cli {

// For --help of commands that follow a job.
inline constexpr char kJobExitCodes[] =
    "\nExit codes:\n"
    "  0    the job succeeded\n"
    "  1    an error that is none of those below\n"
    "  2    the command line or the spec is wrong\n"
    "  3    the job failed\n"
    "  4    the job succeeded in part: some of its cells failed\n"
    "  5    the job was cancelled\n"
    "  6    the server cannot be reached\n"
    "  130  Ctrl-C ended the command before the job's end\n"
    "  141  whoever read standard output went away; the job goes on, unless --local ran it\n";

// JSON where it was asked for, a bar on a terminal, lines elsewhere.
std::unique_ptr<ProgressView> MakeProgressView(bool json, Console* console,
                                               const common::Clock* clock);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_WATCH_COMMAND_H_
