#include "common/checkpoint/families/alibi.h"

#include <cmath>

namespace hopscope::checkpoint {

std::vector<double> BloomSlopes(int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (int64_t m = 1; m <= power; ++m) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(m) / static_cast<double>(power)));
  }
  for (int64_t m = 1; static_cast<int64_t>(slopes.size()) < heads; m += 2) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(m) / static_cast<double>(2 * power)));
  }
  return slopes;
}

std::vector<double> MptSlopes(int64_t heads, double bias_max) {
  int64_t power = 1;
  while (power < heads) power *= 2;
  const auto slope = [power, bias_max](int64_t m) {
    return std::exp2(-bias_max * static_cast<double>(m) / static_cast<double>(power));
  };
  std::vector<double> slopes;
  if (power == heads) {
    for (int64_t m = 1; m <= power; ++m) slopes.push_back(slope(m));
    return slopes;
  }
  for (int64_t m = 2; m <= power; m += 2) slopes.push_back(slope(m));
  for (int64_t m = 1; m <= power; m += 2) slopes.push_back(slope(m));
  slopes.resize(static_cast<size_t>(heads));
  return slopes;
}

}  // namespace hopscope::checkpoint
