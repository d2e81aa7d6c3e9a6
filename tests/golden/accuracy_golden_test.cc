// Accuracy of the shipped checkpoints on a small set: the whole comparison is accuracy_full_test.
#include <gtest/gtest.h>

#include "tests/golden/accuracy.h"
#include "tests/golden/golden_data.h"

namespace hopscope::golden {
namespace {

TEST(AccuracyGoldenTest, ShippedCheckpointsAnswerAsTheReferenceDid) {
  AccuracyMeter meter(CheckpointPath(""));
  for (const ReferenceAccuracy& reference : ShortReferences()) {
    if (reference.checkpoint.find("step-06750") == std::string::npos) continue;
    EXPECT_LE(meter.Distance(reference, /*per_hop=*/100), 4);
  }
  for (const ReferenceAccuracy& reference : LongReferences()) {
    if (reference.added_tokens > 100) continue;
    EXPECT_LE(meter.Distance(reference, /*per_hop=*/25), 4);
  }
}

TEST(AccuracyGoldenTest, OneTokenRepeatedUndoesTheLetterModel) {
  AccuracyMeter meter(CheckpointPath(""));
  for (const ReferenceAccuracy& reference : PaddingReferences()) {
    if (reference.padding != "constant") continue;
    EXPECT_LE(meter.Distance(reference, /*per_hop=*/10), 4);
  }
}

TEST(AccuracyGoldenTest, TheNumberModelLosesItsWayWithLengthAndTheLetterModelDoesNot) {
  AccuracyMeter meter(CheckpointPath(""));
  const double number =
      meter.Measure({.checkpoint = "number/step-06750", .added_tokens = 300}, /*per_hop=*/10);
  const double letter =
      meter.Measure({.checkpoint = "letter/step-06750", .added_tokens = 300}, /*per_hop=*/10);
  EXPECT_GE(letter - number, 0.2);
}

}  // namespace
}  // namespace hopscope::golden
