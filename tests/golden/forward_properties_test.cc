// What the forward pass promises beyond one sequence's numbers: batches, long sequences, partial
// results, isolation, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "common/status.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/naive_model.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::golden {
namespace {

using engine::ForwardPass;
using engine::ForwardRequest;
using engine::Model;
using testing::HasSubstr;

std::vector<int32_t> RandomIds(int64_t count, int64_t vocab, int seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int32_t> uniform(0, static_cast<int32_t>(vocab - 1));
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = uniform(random);
  return ids;
}

std::vector<double> Logits(ForwardPass& pass, const Model& model, const ForwardRequest& request) {
  const auto logits = pass.Run(model, request);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  std::vector<double> values(logits->rows * logits->columns);
  engine::CopyRows(*logits, values.data(), logits->columns);
  return values;
}

std::vector<double> Rows(const std::vector<double>& all, int64_t first, int64_t count,
                         int64_t columns) {
  return {all.begin() + first * columns, all.begin() + (first + count) * columns};
}

// One model of each kind of block, norm, position and window.
class FamilyTest : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Model> model_ =
      LoadModel(GoldenPath("models/" + GetParam()), v1::DTYPE_FLOAT64);
  int64_t vocab_ = model_->architecture().vocab_size;
};

TEST_P(FamilyTest, ASequenceInABatchIsTheSequenceAlone) {
  ForwardPass pass;
  const int64_t tokens = 29;
  const auto ids = RandomIds(5 * tokens, vocab_, 1);
  const auto all = Logits(
      pass, *model_, {.sequences = 5, .tokens = tokens, .ids = ids.data(), .all_logits = true});
  for (int64_t s = 0; s < 5; ++s) {
    const auto alone = Logits(
        pass, *model_,
        {.sequences = 1, .tokens = tokens, .ids = ids.data() + s * tokens, .all_logits = true});
    EXPECT_LE(MaxDifference(alone, Rows(all, s * tokens, tokens, vocab_)), 1e-12);
  }
}

TEST_P(FamilyTest, ASequenceIsTheSameBitForBitAloneAndInEveryBatch) {
  for (const v1::Dtype dtype :
       {v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16}) {
    const auto model = LoadModel(GoldenPath("models/" + GetParam()), dtype);
    ForwardPass pass;
    for (const int64_t tokens : {1, 2, 5, 17, 60, 100}) {
      if (model->architecture().position == checkpoint::PositionKind::kLearned &&
          tokens > model->architecture().n_positions) {
        continue;
      }
      const auto one = RandomIds(tokens, vocab_, 1);
      for (const bool all : {false, true}) {
        const auto alone = Logits(
            pass, *model, {.sequences = 1, .tokens = tokens, .ids = one.data(), .all_logits = all});
        for (const int64_t sequences : {int64_t{2}, int64_t{3}, 272 / tokens}) {
          for (const int64_t place : {int64_t{0}, sequences / 3, sequences - 1}) {
            std::vector<int32_t> ids = RandomIds(sequences * tokens, vocab_, 2);
            std::copy(one.begin(), one.end(), ids.begin() + place * tokens);
            const auto logits = Logits(
                pass, *model,
                {.sequences = sequences, .tokens = tokens, .ids = ids.data(), .all_logits = all});
            const int64_t rows = all ? tokens : 1;
            EXPECT_EQ(Rows(logits, place * rows, rows, vocab_), alone)
                << v1::Dtype_Name(dtype) << " " << tokens << " " << all << " at " << place << " of "
                << sequences;
          }
        }
      }
    }
  }
}

TEST_P(FamilyTest, TheLastTokenAloneGivesTheSameLogits) {
  ForwardPass pass;
  const int64_t tokens = 23;
  const auto ids = RandomIds(4 * tokens, vocab_, 2);
  ForwardRequest request{.sequences = 4, .tokens = tokens, .ids = ids.data()};
  const auto last = Logits(pass, *model_, request);
  request.all_queries = true;
  const auto with_queries = Logits(pass, *model_, request);
  request.all_logits = true;
  const auto all = Logits(pass, *model_, request);
  ASSERT_EQ(last.size(), static_cast<size_t>(4 * vocab_));
  for (int64_t s = 0; s < 4; ++s) {
    const auto expected = Rows(all, s * tokens + tokens - 1, 1, vocab_);
    EXPECT_LE(MaxDifference(Rows(last, s, 1, vocab_), expected), 1e-12);
    EXPECT_LE(MaxDifference(Rows(with_queries, s, 1, vocab_), expected), 1e-12);
  }
}

TEST_P(FamilyTest, BothSetsOfOperatorsAgreeAcrossTiles) {
  // Lengths around whole tiles of 128 queries, far beyond windows.
  for (const int64_t tokens : {1, 2, 127, 128, 129, 300}) {
    if (model_->architecture().position == checkpoint::PositionKind::kLearned &&
        tokens > model_->architecture().n_positions) {
      continue;
    }
    const auto ids = RandomIds(2 * tokens, vocab_, 3);
    const ForwardRequest request{
        .sequences = 2, .tokens = tokens, .ids = ids.data(), .all_logits = true};
    ForwardPass own;
    ForwardPass general({.general_operators = true});
    EXPECT_LE(MaxDifference(Logits(own, *model_, request), Logits(general, *model_, request)),
              1e-10)
        << tokens;
  }
}

TEST_P(FamilyTest, BuffersOfEarlierCallsDoNotShow) {
  const auto ids = RandomIds(3 * 19, vocab_, 4);
  const ForwardRequest request{.sequences = 3, .tokens = 19, .ids = ids.data()};
  ForwardPass fresh;
  const auto expected = Logits(fresh, *model_, request);
  ForwardPass used;
  const auto many = RandomIds(40 * 31, vocab_, 5);
  Logits(used, *model_, {.sequences = 40, .tokens = 31, .ids = many.data(), .all_logits = true});
  EXPECT_EQ(Logits(used, *model_, request), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, FamilyTest,
                         testing::Values("gptj_partial", "gpt2_tied", "gpt_neo_local", "opt",
                                         "bloom_h6", "mpt_h6", "neox_r25_par", "neox_r25_seq",
                                         "llama31", "mistral_sw", "qwen2", "gemma2"),
                         [](const auto& info) { return info.param; });

TEST(LongSequenceTest, AThousandTokensAreFiniteAndRight) {
  for (const char* name : {"gptj_1head", "gptj_partial"}) {
    const std::string path = GoldenPath(std::string("models/") + name);
    const auto float64 = LoadModel(path, v1::DTYPE_FLOAT64);
    const auto float32 = LoadModel(path, v1::DTYPE_FLOAT32);
    const auto ids = RandomIds(1017, float64->architecture().vocab_size, 6);
    const ForwardRequest request{.sequences = 1, .tokens = 1017, .ids = ids.data()};
    ForwardPass pass;
    const auto expected = NaiveModel(path).Logits(ids);
    for (const double logit : expected) ASSERT_TRUE(std::isfinite(logit));
    EXPECT_LE(MaxDifference(Logits(pass, *float64, request), expected), 1e-10) << name;
    EXPECT_LE(MaxDifference(Logits(pass, *float32, request), expected), 3e-4) << name;
  }
}

// Biases by distance and windows, beyond the lengths of the reference data and across tiles of 128
// queries; every token's logits.
class FarKeysTest : public testing::TestWithParam<std::string> {};

TEST_P(FarKeysTest, LongSequencesAgreeWithThePlainImplementation) {
  const std::string path = GoldenPath("models/" + GetParam());
  const NaiveModel naive(path);
  const auto float64 = LoadModel(path, v1::DTYPE_FLOAT64);
  const auto float32 = LoadModel(path, v1::DTYPE_FLOAT32);
  for (int64_t tokens : {300, 700}) {
    if (naive.architecture().position == checkpoint::PositionKind::kLearned) {
      tokens = std::min(tokens, naive.architecture().n_positions);
    }
    const auto ids = RandomIds(tokens, naive.architecture().vocab_size, 8);
    NaiveModel::Matrix rows = naive.Embed(ids);
    for (int64_t layer = 0; layer < naive.architecture().layers; ++layer) {
      rows = naive.Layer(layer, rows);
    }
    std::vector<double> expected;
    for (const auto& row : rows) {
      const auto logits = naive.Head(row);
      expected.insert(expected.end(), logits.begin(), logits.end());
    }
    const ForwardRequest request{
        .sequences = 1, .tokens = tokens, .ids = ids.data(), .all_logits = true};
    for (const bool general : {false, true}) {
      ForwardPass pass({.general_operators = general});
      EXPECT_LE(MaxDifference(Logits(pass, *float64, request), expected), 1e-10) << tokens;
      EXPECT_LE(MaxDifference(Logits(pass, *float32, request), expected), 5e-4) << tokens;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FarKeysTest,
                         testing::Values("bloom_h4", "bloom_h6", "mpt_h6", "mistral_sw", "gemma2",
                                         "gpt_neo_local"),
                         [](const auto& info) { return info.param; });

// Sanitizers slow loops down and take memory of their own.
#ifdef HOPSCOPE_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Peak resident memory of this process, in bytes.
int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

// A matrix of weights [tokens, tokens] would take 1 GiB a head in float32; a tile of 128 queries
// takes 8 MiB.
TEST(LongSequenceTest, SixteenThousandTokensTakeTilesOfAttentionAlone) {
  const int64_t tokens = kSanitized ? 4096 : 16'384;
  const auto model = LoadModel(GoldenPath("models/gptj_1head"), v1::DTYPE_FLOAT32);
  EXPECT_LE(ForwardPass::BufferBytes(model->architecture(), tokens), int64_t{200} << 20);
  const auto ids = RandomIds(tokens, model->architecture().vocab_size, 9);
  for (const bool general : {false, true}) {
    const int64_t before = PeakBytes();
    ForwardPass pass({.general_operators = general});
    for (const double logit :
         Logits(pass, *model, {.sequences = 1, .tokens = tokens, .ids = ids.data()})) {
      ASSERT_TRUE(std::isfinite(logit));
    }
    const int64_t grown = PeakBytes() - before;
    std::printf("%s operators: %ld tokens grew the process by %ld MiB, to a peak of %ld MiB\n",
                general ? "general" : "own", static_cast<long>(tokens),
                static_cast<long>(grown >> 20), static_cast<long>(PeakBytes() >> 20));
    EXPECT_LE(kSanitized ? 0 : grown, int64_t{512} << 20);
  }
}

TEST(LongSequenceTest, FiveThousandTokensStayFinite) {
  const auto model = LoadModel(GoldenPath("models/gptj_partial"), v1::DTYPE_FLOAT32);
  const auto ids = RandomIds(5017, model->architecture().vocab_size, 7);
  ForwardPass pass;
  for (const double logit :
       Logits(pass, *model, {.sequences = 1, .tokens = 5017, .ids = ids.data()})) {
    ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST(ForwardPassTest, TokensOutsideTheVocabularyAreRefused) {
  const auto model = LoadModel(GoldenPath("models/gptj_1head"), v1::DTYPE_FLOAT32);
  ForwardPass pass;
  for (const int32_t id : {-1, static_cast<int32_t>(model->architecture().vocab_size)}) {
    const std::vector<int32_t> ids = {0, 1, id};
    const absl::Status status =
        pass.Run(*model, {.sequences = 1, .tokens = 3, .ids = ids.data()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("at slot 2"));
  }
}

TEST(ForwardPassTest, LearnedPositionsEnd) {
  const auto model = LoadModel(GoldenPath("models/gpt2_tied"), v1::DTYPE_FLOAT32);
  const int64_t tokens = model->architecture().n_positions + 1;
  const std::vector<int32_t> ids(tokens, 1);
  ForwardPass pass;
  EXPECT_EQ(common::ErrorReason(
                pass.Run(*model, {.sequences = 1, .tokens = tokens, .ids = ids.data()}).status()),
            "CHECKPOINT");
}

TEST(ForwardPassTest, ACancelledPassSaysSo) {
  const auto model = LoadModel(GoldenPath("models/gptj_1head"), v1::DTYPE_FLOAT32);
  const std::vector<int32_t> ids(17, 1);
  engine::CancelFlag cancel;
  cancel.Cancel();
  for (const bool general : {false, true}) {
    ForwardPass pass({.general_operators = general});
    EXPECT_EQ(pass.Run(*model, {.sequences = 1, .tokens = 17, .ids = ids.data(), .cancel = &cancel})
                  .status()
                  .code(),
              absl::StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace hopscope::golden
