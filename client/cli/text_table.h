// Lays text out in columns.
#ifndef HOPSCOPE_CLIENT_CLI_TEXT_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hopscope::cli {

enum class Align { kLeft, kRight };

// Columns that a text takes on a terminal: its code points. UTF-8.
size_t DisplayWidth(absl::string_view text);

// The first `width` columns of a text, the last of them "~" where something is left off.
std::string CutToWidth(absl::string_view text, size_t width);

class TextTable {
 public:
  // One alignment a column.
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

  // As many cells as columns, or fewer: the rest is empty.
  void AddRow(std::vector<std::string> cells);

  // Lines that end with "\n", each `indent` spaces in; two spaces between columns, none at the end
  // of a line.
  std::string Render(int indent = 0) const;

 private:
  const std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_TEXT_TABLE_H_
