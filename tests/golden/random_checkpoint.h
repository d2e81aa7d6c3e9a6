// Checkpoints with random weights for any config.json whose family stores plain matrices, for
// tests.
#ifndef HOPSCOPE_TESTS_GOLDEN_RANDOM_CHECKPOINT_H_
#define HOPSCOPE_TESTS_GOLDEN_RANDOM_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "nlohmann/json.hpp"

namespace hopscope::golden {

// Writes NAME/config.json and NAME/model.safetensors (float64) into the folder and returns the
// path. Weights are uniform in (-1, 1) times scale(role), and depend on the seed alone. Ends the
// test program where the config is refused.
std::string WriteRandomCheckpoint(const checkpoint::testing::TempFolder& folder,
                                  const std::string& name, const nlohmann::json& config,
                                  uint32_t seed,
                                  const std::function<double(checkpoint::WeightRole)>& scale);

}  // namespace hopscope::golden

#endif  // HOPSCOPE_TESTS_GOLDEN_RANDOM_CHECKPOINT_H_
