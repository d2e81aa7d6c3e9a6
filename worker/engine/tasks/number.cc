#include "worker/engine/tasks/number.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"

namespace hopscope::engine {
namespace {

constexpr int32_t kIntegers = spec::kNumberIntegers;
constexpr int32_t kFirstLetter = kIntegers + 1;
constexpr int32_t kLetters = spec::kNumberLetters;
constexpr int32_t kLastLetter = kFirstLetter + kLetters - 1;

int32_t IntegerToken(int32_t value) {
  return value <= kIntegers ? value : kLastLetter + value - kIntegers;
}

}  // namespace

NumberTask::NumberTask() : Task("number", TaskNumber::kNumber, kFirstLetter, kLetters) {}

std::string NumberTask::TokenText(int32_t id) const {
  if (id == 0) return "<pad>";
  if (id < 0 || id > IntegerToken(spec::FindTask(name())->max_window_slots())) {
    return absl::StrCat("<", id, "?>");
  }
  if (id <= kIntegers) return absl::StrCat(id);
  if (id > kLastLetter) return absl::StrCat(id - kLastLetter + kIntegers);
  const int32_t letter = id - kFirstLetter;
  if (letter < 26) return std::string(1, static_cast<char>('a' + letter));
  const int32_t bigram = letter - 26;
  return {static_cast<char>('a' + bigram / 26), static_cast<char>('a' + bigram % 26)};
}

void NumberTask::FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                            Sequence* window) const {
  std::vector<int32_t>& tokens = window->tokens;
  const int32_t target_slots = spec.window().target();
  for (int32_t slot = 0; slot < target_slots; ++slot) {
    tokens[slot] = kFirstLetter + static_cast<int32_t>(stream->Below(kLetters));
  }
  for (int32_t slot = target_slots; slot < static_cast<int32_t>(tokens.size()); ++slot) {
    tokens[slot] =
        IntegerToken(slot - static_cast<int32_t>(stream->Below(static_cast<uint32_t>(slot))));
  }
  tokens[window->target] = window->label;
  for (size_t hop = 0; hop < window->path.size(); ++hop) {
    const int32_t next = hop + 1 < window->path.size() ? window->path[hop + 1] : window->target;
    tokens[window->path[hop]] = IntegerToken(window->path[hop] - next);
  }
}

FreeTokens NumberTask::FindFreeTokens(const Sequence& window) const {
  FreeTokens free;
  // No pointer of the path leaves the window, so that any letter may stand before it.
  free.answers.resize(kLetters);
  std::iota(free.answers.begin(), free.answers.end(), kFirstLetter);
  for (int32_t slot = 0; slot + 1 < static_cast<int32_t>(window.tokens.size()); ++slot) {
    const bool on_path = slot == window.target || std::find(window.path.begin(), window.path.end(),
                                                            slot) != window.path.end();
    if (!on_path) free.window.push_back(window.tokens[slot]);
  }
  return free;
}

}  // namespace hopscope::engine
