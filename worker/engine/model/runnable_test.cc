#include "worker/engine/model/runnable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/status.h"

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;
using testing::HasSubstr;

Architecture Good() {
  Architecture a;
  a.family = "gptj";
  a.layers = 2;
  a.heads = 4;
  a.kv_heads = 2;
  a.d_model = 32;
  a.d_head = 8;
  a.d_mlp = 64;
  a.vocab_size = 10;
  a.n_positions = 16;
  a.position = checkpoint::PositionKind::kRotaryInterleaved;
  a.rotary_dim = 4;
  a.rotary_angles = {1, 0.1};
  a.attention_scale = {1, 1};
  a.attention_window = {0, 0};
  return a;
}

TEST(RunnableTest, AcceptsAWholeDescription) { EXPECT_TRUE(CheckRunnable(Good()).ok()); }

TEST(RunnableTest, AcceptsBlocksOfAttentionAlone) {
  Architecture architecture = Good();
  architecture.norm = checkpoint::NormKind::kNone;
  architecture.d_mlp = 0;
  architecture.residual = false;
  EXPECT_TRUE(CheckRunnable(architecture).ok());
}

TEST(RunnableTest, RefusesWhatItWouldHaveToGuess) {
  const struct {
    std::function<void(Architecture*)> spoil;
    const char* message;
  } cases[] = {
      {[](Architecture* a) { a->layers = 0; }, "a size is 0"},
      {[](Architecture* a) { a->kv_heads = 3; }, "4 query heads do not share 3 key heads"},
      {[](Architecture* a) { a->rotary_dim = 3; }, "3 rotating columns"},
      {[](Architecture* a) { a->rotary_dim = 10; }, "10 rotating columns in a head of 8"},
      {[](Architecture* a) { a->rotary_angles = {1}; }, "1 rotary angles for 4 columns"},
      {[](Architecture* a) { a->position = checkpoint::PositionKind::kAlibi; },
       "0 ALiBi slopes for 4 heads"},
      {[](Architecture* a) {
         a->block = checkpoint::BlockForm::kParallelTwoNorms;
         a->norm = checkpoint::NormKind::kNone;
       },
       "a norm that it does not have"},
      {[](Architecture* a) {
         a->block = checkpoint::BlockForm::kParallelSharedNorm;
         a->d_mlp = 0;
       },
       "an MLP that it does not have"},
      {[](Architecture* a) {
         a->block = checkpoint::BlockForm::kSandwich;
         a->residual = false;
       },
       "no residual stream"},
      {[](Architecture* a) { a->d_mlp = -1; }, "a size is 0"},
      {[](Architecture* a) { a->attention_scale = {1}; }, "not given for every layer"},
      {[](Architecture* a) { a->vocab_size = int64_t{1} << 31; }, "too wide"},
  };
  for (const auto& test_case : cases) {
    Architecture architecture = Good();
    test_case.spoil(&architecture);
    const absl::Status status = CheckRunnable(architecture);
    EXPECT_EQ(common::ErrorReason(status), "CHECKPOINT");
    EXPECT_THAT(status.message(), HasSubstr(test_case.message));
  }
}

TEST(RunnableTest, LearnedPositionsEnd) {
  Architecture architecture = Good();
  EXPECT_TRUE(CheckLength(architecture, 5000).ok());
  architecture.position = checkpoint::PositionKind::kLearned;
  EXPECT_TRUE(CheckLength(architecture, 16).ok());
  EXPECT_THAT(CheckLength(architecture, 17).message(), HasSubstr("17 tokens do not fit the 16"));
  EXPECT_FALSE(CheckLength(architecture, 0).ok());
}

}  // namespace
}  // namespace hopscope::engine
