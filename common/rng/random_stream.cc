#include "common/rng/random_stream.h"

#include <cassert>
#include <numeric>

namespace hopscope::rng {

PhiloxCounter FirstCounter(const StreamKey& key) {
  assert(key.high < (uint32_t{1} << 24));
  return {0, static_cast<uint32_t>(key.low), static_cast<uint32_t>(key.low >> 32),
          key.high | static_cast<uint32_t>(key.domain) << 24};
}

PhiloxKey CipherKey(const StreamKey& key) {
  const uint64_t seed = static_cast<uint64_t>(key.seed);
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

RandomStream::RandomStream(const StreamKey& key)
    : cipher_key_(CipherKey(key)), counter_(FirstCounter(key)) {}

uint32_t RandomStream::Next() {
  if (next_ == 4) {
    words_ = Philox4x32(counter_, cipher_key_);
    ++counter_[0];
    next_ = 0;
  }
  return words_[next_++];
}

uint32_t RandomStream::Below(uint32_t n) {
  assert(n > 0);
  uint64_t product = uint64_t{Next()} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t rejected = (uint32_t{0} - n) % n;  // 2^32 mod n
    while (static_cast<uint32_t>(product) < rejected) product = uint64_t{Next()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

std::vector<uint32_t> Permutation(const StreamKey& key, uint32_t n) {
  std::vector<uint32_t> values(n);
  std::iota(values.begin(), values.end(), 0u);
  RandomStream stream(key);
  stream.Shuffle(absl::MakeSpan(values));
  return values;
}

}  // namespace hopscope::rng
