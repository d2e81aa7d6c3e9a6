#include "worker/engine/tasks/retrieval.h"

#include <numeric>
#include <utility>

#include "worker/engine/tasks/pair_tokens.h"

namespace hopscope::engine {

RetrievalTask::RetrievalTask()
    : Task("retrieval", TaskNumber::kRetrieval, kFirstAttribute, kAttributes) {}

std::string RetrievalTask::TokenText(int32_t id) const { return PairTokenText(id); }

void RetrievalTask::FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                               Sequence* window) const {
  const size_t slots = spec.window().target();
  std::vector<int32_t> symbols(kSymbols);
  std::iota(symbols.begin(), symbols.end(), 0);
  for (size_t k = 0; k < slots; ++k) {
    std::swap(symbols[k], symbols[k + stream->Below(static_cast<uint32_t>(symbols.size() - k))]);
  }
  for (size_t slot = 0; slot < slots; ++slot) {
    window->tokens[slot] =
        PairToken(symbols[slot], static_cast<int32_t>(stream->Below(kAttributes)));
  }
  const int32_t queried = symbols[window->target];
  window->tokens[window->target] = PairToken(queried, AttributeOfLabel(window->label));
  window->tokens.back() = SymbolToken(queried);
}

FreeTokens RetrievalTask::FindFreeTokens(const Sequence& window) const {
  return PairsOfOtherSymbols(window);
}

}  // namespace hopscope::engine
