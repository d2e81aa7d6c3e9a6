#include "client/cli/console.h"

#include "client/cli/text_table.h"
#include "common/utf8.h"

namespace hopscope::cli {
namespace {

constexpr int kDefaultColumns = 80;

const char* ColorOf(Console::Tone tone) {
  switch (tone) {
    case Console::Tone::kGood:
      return "\033[32m";
    case Console::Tone::kWarning:
      return "\033[33m";
    case Console::Tone::kError:
      return "\033[31m";
    case Console::Tone::kPlain:
      break;
  }
  return "";
}

std::string Harmless(absl::string_view text) {
  std::string shown = common::ReplaceInvalidUtf8(text);
  for (char& byte : shown) {
    const auto code = static_cast<unsigned char>(byte);
    if ((code < 0x20 && byte != '\n' && byte != '\t') || code == 0x7f) byte = '?';
  }
  return shown;
}

}  // namespace

bool Console::Print(absl::string_view text) {
  common::MutexLock lock(&mutex_);
  EraseStatus();
  *options_.out << text << std::flush;
  DrawStatus();
  return options_.out->good();
}

void Console::Message(absl::string_view text, Tone tone) {
  common::MutexLock lock(&mutex_);
  EraseStatus();
  const std::string color = options_.color ? ColorOf(tone) : "";
  *options_.err << color << Harmless(text) << (color.empty() ? "" : "\033[0m") << "\n";
  DrawStatus();
  options_.err->flush();
}

void Console::SetStatus(absl::string_view text) {
  common::MutexLock lock(&mutex_);
  if (!options_.err_is_terminal) return;
  EraseStatus();
  status_ = Harmless(text);
  DrawStatus();
  options_.err->flush();
}

int Console::columns() const {
  const int columns = options_.err_columns ? options_.err_columns() : 0;
  return columns > 0 ? columns : kDefaultColumns;
}

void Console::EraseStatus() {
  // To the line's start, and clear to its end.
  if (!status_.empty()) *options_.err << "\r\033[K";
}

void Console::DrawStatus() {
  // A line that fills the last column would wrap.
  if (!status_.empty()) *options_.err << CutToWidth(status_, columns() - 1);
}

}  // namespace hopscope::cli
