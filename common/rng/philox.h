// Philox4x32-10, a counter-based generator: 128 bits of counter and 64 bits of key to 128 random
// bits, in any order and on any machine. Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011).
//
// For a fixed key the function is a bijection of the counter, so that blocks with different
// counters differ. Pure function; thread-safe.
#ifndef HOPSCOPE_COMMON_RNG_PHILOX_H_
#define HOPSCOPE_COMMON_RNG_PHILOX_H_

#include <array>
#include <cstdint>

namespace hopscope::rng {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

}  // namespace hopscope::rng

#endif  // HOPSCOPE_COMMON_RNG_PHILOX_H_
