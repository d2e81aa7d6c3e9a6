// Where commands print: results to standard output, messages and the progress bar to standard
// error.
#ifndef HOPSCOPE_CLIENT_CLI_CONSOLE_H_
#define HOPSCOPE_CLIENT_CLI_CONSOLE_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "common/mutex.h"

namespace hopscope::cli {

struct ConsoleOptions {
  // Must outlive the console.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Whether err is a terminal that can move its cursor.
  bool err_is_terminal = false;
  // Colours on err; never without a terminal, nor with $NO_COLOR (https://no-color.org).
  bool color = false;
  // Columns of the terminal; asked each time, since it may be resized. Empty or 0: 80.
  std::function<int()> err_columns;
};

// Messages push the status line down, so that both stay readable. Thread-safe.
class Console {
 public:
  explicit Console(ConsoleOptions options) : options_(std::move(options)) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Text for standard output, as it is. False where nobody reads it any more.
  bool Print(absl::string_view text);
  // One line of JSON, or of text.
  bool PrintLine(absl::string_view line) { return Print(std::string(line) + "\n"); }

  // Lines for standard error. Control characters other than line ends and tabs, which a server or a
  // file name may have brought along, are shown as "?".
  enum class Tone { kPlain, kGood, kWarning, kError };
  void Message(absl::string_view text, Tone tone = Tone::kPlain);

  // Replaces the line at the bottom of the terminal; empty removes it. Does nothing where there is
  // no terminal. The text is cut to the width.
  void SetStatus(absl::string_view text);

  bool has_status_line() const { return options_.err_is_terminal; }
  int columns() const;

 private:
  void EraseStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DrawStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConsoleOptions options_;
  common::Mutex mutex_;
  std::string status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_CONSOLE_H_
