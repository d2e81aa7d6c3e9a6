// The whole comparison of accuracies with the reference run. The two checkpoints from the middle of
// training are not in the repository: the environment's HOPSCOPE_EXTRA_CHECKPOINTS, or the CMake
// variable of that name, names the folder that holds number/step-02500 and letter/step-02000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/golden/accuracy.h"
#include "tests/golden/golden_data.h"

namespace hopscope::golden {
namespace {

std::string ExtraCheckpoints() {
  const char* const path = std::getenv("HOPSCOPE_EXTRA_CHECKPOINTS");
  return path != nullptr ? path : HOPSCOPE_EXTRA_CHECKPOINTS;
}

// Of some sixty figures one may lie between three and four standard errors off.
void Expect(const std::vector<double>& distances) {
  int far = 0;
  for (const double distance : distances) {
    EXPECT_LE(distance, 4);
    far += distance > 3;
  }
  EXPECT_LE(far, 1);
}

TEST(AccuracyFullTest, ShippedCheckpoints) {
  AccuracyMeter meter(CheckpointPath(""));
  std::vector<double> distances;
  for (const ReferenceAccuracy& reference : ShortReferences()) {
    if (reference.checkpoint.find("step-06750") == std::string::npos) continue;
    distances.push_back(meter.Distance(reference, /*per_hop=*/1000));
  }
  for (const ReferenceAccuracy& reference : LongReferences()) {
    distances.push_back(meter.Distance(reference, /*per_hop=*/50));
  }
  Expect(distances);
}

TEST(AccuracyFullTest, KindsOfPadding) {
  AccuracyMeter meter(CheckpointPath(""));
  std::vector<double> distances;
  for (const ReferenceAccuracy& reference : PaddingReferences()) {
    distances.push_back(meter.Distance(reference, /*per_hop=*/50));
  }
  Expect(distances);
}

TEST(AccuracyFullTest, CheckpointsFromTheMiddleOfTraining) {
  std::vector<double> distances;
  std::unique_ptr<AccuracyMeter> meter;
  for (const ReferenceAccuracy& reference : ShortReferences()) {
    if (reference.checkpoint.find("step-06750") != std::string::npos) continue;
    if (!std::filesystem::exists(ExtraCheckpoints() + "/" + reference.checkpoint)) {
      GTEST_SKIP() << reference.checkpoint << " is not under \"" << ExtraCheckpoints()
                   << "\"; set HOPSCOPE_EXTRA_CHECKPOINTS";
    }
    if (meter == nullptr) meter = std::make_unique<AccuracyMeter>(ExtraCheckpoints());
    distances.push_back(meter->Distance(reference, /*per_hop=*/1000));
  }
  Expect(distances);
}

}  // namespace
}  // namespace hopscope::golden
