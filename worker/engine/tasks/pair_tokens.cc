#include "worker/engine/tasks/pair_tokens.h"

#include "absl/strings/str_cat.h"

namespace hopscope::engine {

std::string PairTokenText(int32_t id) {
  if (id == 0) return "<pad>";
  if (id < 0 || id >= kFirstAttribute + kAttributes) return absl::StrCat("<", id, "?>");
  if (id >= kFirstAttribute) return absl::StrCat("w", id - kFirstAttribute + 1);
  if (id >= kFirstSymbol) return absl::StrCat("s", id - kFirstSymbol + 1);
  return absl::StrCat("s", SymbolOfPair(id) + 1, "w", (id - kFirstPair) % kAttributes + 1);
}

FreeTokens PairsOfOtherSymbols(const Sequence& window) {
  const int32_t queried = window.tokens.back() - kFirstSymbol;
  FreeTokens free;
  for (int32_t pair = kFirstPair; pair < kFirstSymbol; ++pair) {
    if (SymbolOfPair(pair) != queried) free.answers.push_back(pair);
  }
  for (size_t slot = 0; slot + 1 < window.tokens.size(); ++slot) {
    if (SymbolOfPair(window.tokens[slot]) != queried) free.window.push_back(window.tokens[slot]);
  }
  return free;
}

}  // namespace hopscope::engine
