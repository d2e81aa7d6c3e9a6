// The vocabulary of tasks "retrieval" and "partial_induction": pairs of a symbol and an attribute,
// symbols, and attributes.
//
// Token ids: 0 padding of batches; pairs (symbol, attribute) with 32 symbols and 8 attributes are
// ids 1..256, symbol-major; symbols alone are ids 257..288, attributes alone ids 289..296. Texts:
// "s5w3" a pair, "s5" a symbol, "w3" an attribute, each counted from 1.
//
// Pure functions; symbols are 0..31 and attributes 0..7 here.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_PAIR_TOKENS_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_PAIR_TOKENS_H_

#include <cstdint>
#include <string>

#include "common/spec/catalog.h"
#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

inline constexpr int32_t kSymbols = spec::kPairSymbols;
inline constexpr int32_t kAttributes = spec::kPairAttributes;
inline constexpr int32_t kFirstPair = 1;
inline constexpr int32_t kFirstSymbol = kFirstPair + kSymbols * kAttributes;
inline constexpr int32_t kFirstAttribute = kFirstSymbol + kSymbols;

inline int32_t PairToken(int32_t symbol, int32_t attribute) {
  return kFirstPair + symbol * kAttributes + attribute;
}
inline int32_t SymbolOfPair(int32_t pair) { return (pair - kFirstPair) / kAttributes; }
inline int32_t SymbolToken(int32_t symbol) { return kFirstSymbol + symbol; }
inline int32_t AttributeOfLabel(int32_t label) { return label - kFirstAttribute; }

// As Task::TokenText.
std::string PairTokenText(int32_t id);

// What may stand in front of a window whose query is a symbol: every pair, and every pair of the
// window, of another symbol.
FreeTokens PairsOfOtherSymbols(const Sequence& window);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_PAIR_TOKENS_H_
