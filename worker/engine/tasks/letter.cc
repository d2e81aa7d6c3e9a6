#include "worker/engine/tasks/letter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hopscope::engine {
namespace {

constexpr int32_t kLetters = 8;
constexpr int32_t kIntegers = 8;
constexpr int32_t kFirstAnswer = 1;
constexpr int32_t kFirstPair = kFirstAnswer + kLetters * kIntegers;

// Letters are 0..7 for a..h.
int32_t AnswerToken(int32_t letter, int32_t integer) {
  return kFirstAnswer + letter * kIntegers + integer - 1;
}

int32_t PairToken(int32_t first, int32_t second) { return kFirstPair + first * kLetters + second; }

int32_t FirstLetter(int32_t token) {
  return token < kFirstPair ? (token - kFirstAnswer) / kIntegers : (token - kFirstPair) / kLetters;
}

int32_t SecondLetter(int32_t pair) { return (pair - kFirstPair) % kLetters; }

// All letters but `taken`, ascending.
std::vector<int32_t> LettersBut(const std::vector<int32_t>& taken) {
  std::vector<int32_t> letters;
  for (int32_t letter = 0; letter < kLetters; ++letter) {
    if (std::find(taken.begin(), taken.end(), letter) == taken.end()) letters.push_back(letter);
  }
  return letters;
}

// The letters that lead along the path, one a hop; the last is the answer's.
std::vector<int32_t> DrawPathLetters(int32_t hops, int32_t answer, rng::RandomStream* stream) {
  std::vector<int32_t> letters = LettersBut({answer});
  for (size_t k = 0; k + 1 < static_cast<size_t>(hops); ++k) {
    std::swap(letters[k], letters[k + stream->Below(static_cast<uint32_t>(letters.size() - k))]);
  }
  letters.resize(hops - 1);
  letters.push_back(answer);
  return letters;
}

}  // namespace

LetterTask::LetterTask()
    : Task("letter", TaskNumber::kLetter, kFirstAnswer, kLetters * kIntegers) {}

std::string LetterTask::TokenText(int32_t id) const {
  if (id == 0) return "<pad>";
  if (id < 0 || id >= kFirstPair + kLetters * kLetters) return absl::StrCat("<", id, "?>");
  std::string text(1, static_cast<char>('a' + FirstLetter(id)));
  if (id < kFirstPair) return absl::StrCat(text, (id - kFirstAnswer) % kIntegers + 1);
  return text + static_cast<char>('a' + SecondLetter(id));
}

void LetterTask::FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                            Sequence* window) const {
  const std::vector<int32_t> path_letters =
      DrawPathLetters(spec.hops(), FirstLetter(window->label), stream);
  const std::vector<int32_t> free = LettersBut(path_letters);
  const auto draw_free = [&free, stream] {
    return free[stream->Below(static_cast<uint32_t>(free.size()))];
  };
  std::vector<int32_t>& tokens = window->tokens;
  for (int32_t slot = 0; slot < static_cast<int32_t>(tokens.size()); ++slot) {
    const int32_t first = draw_free();
    tokens[slot] = slot < spec.window().target()
                       ? AnswerToken(first, 1 + static_cast<int32_t>(stream->Below(kIntegers)))
                       : PairToken(first, draw_free());
  }
  tokens[window->target] = window->label;
  for (size_t hop = 0; hop < window->path.size(); ++hop) {
    int32_t& token = tokens[window->path[hop]];
    token = PairToken(hop == 0 ? FirstLetter(token) : path_letters[hop - 1], path_letters[hop]);
  }
}

FreeTokens LetterTask::FindFreeTokens(const Sequence& window) const {
  std::vector<int32_t> taken;
  for (const int32_t slot : window.path) taken.push_back(SecondLetter(window.tokens[slot]));
  const std::vector<int32_t> letters = LettersBut(taken);
  FreeTokens free;
  for (const int32_t first : letters) {
    for (int32_t integer = 1; integer <= kIntegers; ++integer) {
      free.answers.push_back(AnswerToken(first, integer));
    }
    for (const int32_t second : letters) free.instructions.push_back(PairToken(first, second));
  }
  for (size_t slot = 0; slot + 1 < window.tokens.size(); ++slot) {
    const int32_t first = FirstLetter(window.tokens[slot]);
    if (std::find(taken.begin(), taken.end(), first) == taken.end()) {
      free.window.push_back(window.tokens[slot]);
    }
  }
  return free;
}

}  // namespace hopscope::engine
