// Streams of random numbers that are named, not seeded in sequence: a stream is a pure function of
// its key, so that any process can draw from any stream at any time.
//
// Layout, fixed for ever, since every sequence that was ever made depends on it. Block b of a
// stream is
//   Philox4x32(counter = {b, low bits 0-31, low bits 32-63, high bits 0-23 | domain << 24},
//              key     = {seed bits 0-31, seed bits 32-63})
// and the stream is the four words of block 0, then those of block 1, and so on. A seed below 0 is
// taken in two's complement. Every field has its own bits and nothing is hashed: two streams whose
// keys differ in any field share no (counter, key) pair, and with one seed (Philox is a bijection
// of the counter) no block. A stream has 2^34 words.
//
// Derived numbers
//   Below(n)       multiply-shift with rejection (Lemire, "Fast random integer generation in an
//   interval", 2019): of the
//                  64-bit product x * n with a fresh word x, the upper half is the result; words
//                  whose lower half is below 2^32 mod n are thrown away, which makes it exactly
//                  uniform.
//   Shuffle        Fisher-Yates from the end: for i = n-1 down to 1 swap element i with element
//   Below(i + 1).
//
// A RandomStream is not thread-safe; keys are values.
#ifndef HOPSCOPE_COMMON_RNG_RANDOM_STREAM_H_
#define HOPSCOPE_COMMON_RNG_RANDOM_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/rng/philox.h"

namespace hopscope::rng {

// What a stream is for. All users of streams take their domain from this list, so that the streams
// of one seed never meet. Numbers are part of the layout: never change or reuse one.
enum class Domain : uint8_t {
  kWindow = 1,           // window and query of a sequence
  kItemOrder = 2,        // order of the balanced combinations of a block of items
  kRandomPadding = 3,    // added tokens of padding "random"
  kPairsPadding = 4,     // added tokens of padding "pairs"
  kConstantPadding = 5,  // the added token of padding "constant"
};

// Name of a stream.
struct StreamKey {
  int64_t seed = 0;
  Domain domain = Domain::kWindow;
  uint64_t low = 0;   // free for the domain
  uint32_t high = 0;  // free for the domain; below 2^24

  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};

// Counter of a stream's first block, and its Philox key.
PhiloxCounter FirstCounter(const StreamKey& key);
PhiloxKey CipherKey(const StreamKey& key);

class RandomStream {
 public:
  explicit RandomStream(const StreamKey& key);

  // The next word.
  uint32_t Next();

  // Uniform in 0 .. n-1; n must be at least 1.
  uint32_t Below(uint32_t n);

  template <typename T>
  void Shuffle(absl::Span<T> values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Below(static_cast<uint32_t>(i))]);
    }
  }

 private:
  const PhiloxKey cipher_key_;
  PhiloxCounter counter_;
  PhiloxCounter words_{};
  int next_ = 4;  // first word of words_ that is not used yet; 4: none
};

// A uniformly drawn permutation of 0 .. n-1: the identity, shuffled with the stream. O(n) time and
// memory.
std::vector<uint32_t> Permutation(const StreamKey& key, uint32_t n);

}  // namespace hopscope::rng

#endif  // HOPSCOPE_COMMON_RNG_RANDOM_STREAM_H_
