#include "worker/engine/tasks/index.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"

namespace hopscope::engine {
namespace {

constexpr int32_t kFirstSymbol = 1;
constexpr int32_t kSymbols = spec::kIndexSymbols;
constexpr int32_t kFirstPosition = kFirstSymbol + kSymbols;

}  // namespace

IndexTask::IndexTask() : Task("index", TaskNumber::kIndex, kFirstSymbol, kSymbols) {}

std::string IndexTask::TokenText(int32_t id) const {
  if (id == 0) return "<pad>";
  const int32_t positions = spec::FindTask(name())->max_window_slots();
  if (id < 0 || id >= kFirstPosition + positions) return absl::StrCat("<", id, "?>");
  if (id >= kFirstPosition) return absl::StrCat("p", id - kFirstPosition + 1);
  const int32_t symbol = id - kFirstSymbol;
  if (symbol < 26) return std::string(1, static_cast<char>('a' + symbol));
  return {'a', static_cast<char>('a' + symbol - 26)};
}

void IndexTask::FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                           Sequence* window) const {
  for (int32_t slot = 0; slot < spec.window().target(); ++slot) {
    window->tokens[slot] = kFirstSymbol + static_cast<int32_t>(stream->Below(kSymbols));
  }
  window->tokens[window->target] = window->label;
  window->tokens.back() = kFirstPosition + window->target;
}

FreeTokens IndexTask::FindFreeTokens(const Sequence& window) const {
  FreeTokens free;
  // The query counts within the window, so that any symbol may stand before it.
  free.answers.resize(kSymbols);
  std::iota(free.answers.begin(), free.answers.end(), kFirstSymbol);
  for (int32_t slot = 0; slot + 1 < static_cast<int32_t>(window.tokens.size()); ++slot) {
    if (slot != window.target) free.window.push_back(window.tokens[slot]);
  }
  return free;
}

}  // namespace hopscope::engine
