#include "worker/engine/tasks/partial_induction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "worker/engine/tasks/pair_tokens.h"

namespace hopscope::engine {
namespace {

// One of 0 .. count-1 other than `excluded`.
int32_t DrawBut(int32_t excluded, int32_t count, rng::RandomStream* stream) {
  const auto draw = static_cast<int32_t>(stream->Below(static_cast<uint32_t>(count - 1)));
  return draw < excluded ? draw : draw + 1;
}

}  // namespace

PartialInductionTask::PartialInductionTask()
    : Task("partial_induction", TaskNumber::kPartialInduction, kFirstAttribute, kAttributes,
           /*first_answer_slot=*/1) {}

std::string PartialInductionTask::TokenText(int32_t id) const { return PairTokenText(id); }

void PartialInductionTask::FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                                      Sequence* window) const {
  const auto queried = static_cast<int32_t>(stream->Below(kSymbols));
  const size_t earlier_pairs = window->target == 1 ? 1 : 1 + stream->Below(2);
  std::vector<int32_t> earlier(window->target);
  std::iota(earlier.begin(), earlier.end(), 0);
  for (size_t k = 0; k < earlier_pairs; ++k) {
    std::swap(earlier[k], earlier[k + stream->Below(static_cast<uint32_t>(earlier.size() - k))]);
  }
  earlier.resize(earlier_pairs);
  std::sort(earlier.begin(), earlier.end());
  for (int32_t slot = 0; slot < spec.window().target(); ++slot) {
    const int32_t symbol = DrawBut(queried, kSymbols, stream);
    window->tokens[slot] = PairToken(symbol, static_cast<int32_t>(stream->Below(kAttributes)));
  }
  const int32_t answer = AttributeOfLabel(window->label);
  for (const int32_t slot : earlier) {
    window->tokens[slot] = PairToken(queried, DrawBut(answer, kAttributes, stream));
  }
  window->tokens[window->target] = PairToken(queried, answer);
  window->tokens.back() = SymbolToken(queried);
}

FreeTokens PartialInductionTask::FindFreeTokens(const Sequence& window) const {
  return PairsOfOtherSymbols(window);
}

}  // namespace hopscope::engine
