#include "worker/engine/tasks/padding.h"

#include <algorithm>
#include <cassert>

namespace hopscope::engine {
namespace {

int32_t Draw(const std::vector<int32_t>& tokens, rng::RandomStream* stream) {
  return tokens[stream->Below(static_cast<uint32_t>(tokens.size()))];
}

}  // namespace

std::vector<int32_t> MakePadding(const FreeTokens& free, TaskNumber task,
                                 const v1::SequenceSpec& spec, int64_t item) {
  const auto stream = [&](rng::Domain domain) {
    return rng::RandomStream(SequenceKey(domain, task, spec, item));
  };
  const absl::string_view padding = spec.padding();
  std::vector<int32_t> tokens(spec.added_tokens());  // nearest to the window first
  if (padding == "random") {
    rng::RandomStream draws = stream(rng::Domain::kRandomPadding);
    for (int32_t& token : tokens) token = Draw(free.answers, &draws);
  } else if (padding == "pairs") {
    rng::RandomStream draws = stream(rng::Domain::kPairsPadding);
    for (int32_t& token : tokens) token = Draw(free.instructions, &draws);
  } else if (padding == "window") {
    const size_t size = free.window.size();
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = free.window[size - 1 - i % size];
  } else {
    assert(padding == "constant");
    rng::RandomStream draws = stream(rng::Domain::kConstantPadding);
    std::fill(tokens.begin(), tokens.end(), Draw(free.answers, &draws));
  }
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace hopscope::engine
