// Replaced heads against their definition written down plainly, for every kind of position, window,
// key sharing and block, by the CPU's own loops and by LibTorch's general operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/naive_model.h"
#include "tests/golden/naive_replacement.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::golden {
namespace {

using checkpoint::testing::TempFolder;
using engine::ForwardObserver;
using engine::ForwardPass;
using engine::ForwardRequest;
using engine::HeadMeans;
using engine::HeadReplacements;
using engine::MatrixView;
using engine::Model;
using engine::ReplacementKind;

using Rows = std::vector<std::vector<double>>;

std::vector<int32_t> RandomIds(int64_t count, int64_t vocab, int seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int32_t> uniform(0, static_cast<int32_t>(vocab - 1));
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = uniform(random);
  return ids;
}

Rows Copy(const MatrixView& view) {
  std::vector<double> all(view.rows * view.columns);
  engine::CopyRows(view, all.data(), view.columns);
  Rows rows;
  for (int64_t r = 0; r < view.rows; ++r) {
    rows.emplace_back(all.begin() + r * view.columns, all.begin() + (r + 1) * view.columns);
  }
  return rows;
}

std::vector<double> Logits(ForwardPass& pass, const Model& model, const ForwardRequest& request) {
  const auto logits = pass.Run(model, request);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  std::vector<double> values(logits->rows * logits->columns);
  engine::CopyRows(*logits, values.data(), logits->columns);
  return values;
}

// Everything that a pass shows of one layer of one sequence.
class LayerCapture : public ForwardObserver {
 public:
  LayerCapture(int64_t layer, int64_t heads, int64_t tokens)
      : layer_(layer), weights(heads, Rows(tokens, std::vector<double>(tokens, 0))) {}

  Interest interest() const override {
    return {.residual = true, .projections = true, .attention = true, .attended = true};
  }
  void OnResidual(int64_t layer, const MatrixView& rows) override {
    if (layer == layer_) residual = Copy(rows);
  }
  void OnProjections(const engine::LayerProjections& projections) override {
    if (projections.layer != layer_) return;
    queries = Copy(projections.queries);
    keys = Copy(projections.keys);
  }
  void OnAttention(const engine::AttentionWeights& attention) override {
    if (attention.layer != layer_) return;
    const Rows run = Copy(attention.weights);
    for (size_t r = 0; r < run.size(); ++r) {
      for (size_t c = 0; c < run[r].size(); ++c) {
        weights[attention.head][attention.first_query + r][attention.first_key + c] = run[r][c];
      }
    }
  }
  void OnAttended(int64_t layer, int64_t first_query, const MatrixView& rows) override {
    if (layer == layer_ && first_query == 0) attended = Copy(rows);
  }

 private:
  const int64_t layer_;

 public:
  Rows residual, queries, keys, attended;
  std::vector<Rows> weights;  // [heads][queries][keys]
};

std::vector<double> Slice(const std::vector<double>& row, int64_t first, int64_t count) {
  return {row.begin() + first, row.begin() + first + count};
}

using Case = std::tuple<std::string, bool>;

class HeadReplacementTest : public testing::TestWithParam<Case> {
 protected:
  std::shared_ptr<const Model> Load(v1::Dtype dtype) const {
    return LoadModel(GoldenPath("models/" + std::get<0>(GetParam())), dtype);
  }
  ForwardPass MakePass() const {
    return ForwardPass({.general_operators = std::get<1>(GetParam())});
  }
};

TEST_P(HeadReplacementTest, WeightsAreThoseOfTheDefinition) {
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32}) {
    const auto model = Load(dtype);
    const auto& a = model->architecture();
    const double tolerance = dtype == v1::DTYPE_FLOAT64 ? 1e-11 : 5e-5;
    // Beyond every window; the second one beyond a run of queries.
    for (const int64_t tokens : {int64_t{23}, int64_t{139}}) {
      if (a.position == checkpoint::PositionKind::kLearned && tokens > a.n_positions) continue;
      const auto ids = RandomIds(tokens, a.vocab_size, 11);
      const int64_t layer = a.layers - 1;
      for (const auto kind : {ReplacementKind::kPositionalOnly, ReplacementKind::kSymbolicOnly}) {
        const int64_t head = a.heads - 1;
        const HeadReplacements replacements{.heads = {{layer, head, kind}}};
        LayerCapture seen(layer, a.heads, tokens);
        ForwardPass pass = MakePass();
        Logits(pass, *model,
               {.sequences = 1,
                .tokens = tokens,
                .ids = ids.data(),
                .replacements = &replacements,
                .all_queries = true,
                .observer = &seen});
        const int64_t key_column = head / (a.heads / a.kv_heads) * a.d_head;
        Rows keys;
        for (const auto& row : seen.keys) keys.push_back(Slice(row, key_column, a.d_head));
        // All of the short sequence, and around the ends of the long one's runs.
        for (int64_t query = 0; query<tokens; query += tokens> 50 && query > 2 ? 17 : 1) {
          std::vector<double> expected =
              NaiveWeights(a, kind, layer, head, keys,
                           Slice(seen.queries[query], head * a.d_head, a.d_head), query);
          expected.resize(tokens, 0);
          EXPECT_LE(MaxDifference(seen.weights[head][query], expected), tolerance)
              << "query " << query << " of " << tokens;
        }
      }
    }
  }
}

TEST_P(HeadReplacementTest, OutputsOfConstantHeadsAreWhatWasAskedForAndOthersStay) {
  const auto model = Load(v1::DTYPE_FLOAT64);
  const auto& a = model->architecture();
  constexpr int64_t kTokens = 13;
  const auto ids = RandomIds(kTokens, a.vocab_size, 12);
  HeadMeans means(a.layers, kTokens, a.heads * a.d_head);
  double next = 0.25;
  for (double& value : means.values()) value = next = next * 1.7 - static_cast<int>(next * 1.7);
  const int64_t last = a.heads - 1;
  HeadReplacements replacements{.heads = {{1, 0, ReplacementKind::kZero}}, .means = &means};
  if (last > 0) replacements.heads.push_back({1, last, ReplacementKind::kMean});
  ForwardRequest request{.sequences = 1, .tokens = kTokens, .ids = ids.data(), .all_queries = true};
  LayerCapture whole(1, a.heads, kTokens);
  LayerCapture replaced(1, a.heads, kTokens);
  ForwardPass pass = MakePass();
  request.observer = &whole;
  Logits(pass, *model, request);
  request.observer = &replaced;
  request.replacements = &replacements;
  Logits(pass, *model, request);
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t head = 0; head < a.heads; ++head) {
      const int64_t column = head * a.d_head;
      const auto got = Slice(replaced.attended[token], column, a.d_head);
      if (head == 0) {
        EXPECT_EQ(got, std::vector<double>(a.d_head, 0));
      } else if (head == last) {
        const double* const mean = means.Row(1, token) + column;
        EXPECT_EQ(got, std::vector<double>(mean, mean + a.d_head));
      } else {
        EXPECT_EQ(got, Slice(whole.attended[token], column, a.d_head));
      }
    }
  }
}

TEST_P(HeadReplacementTest, APassFromTheResidualStreamIsThePassFromTheTokens) {
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32}) {
    const auto model = Load(dtype);
    const auto& a = model->architecture();
    constexpr int64_t kTokens = 17;
    const auto ids = RandomIds(3 * kTokens, a.vocab_size, 13);
    ForwardRequest request{.sequences = 3, .tokens = kTokens, .ids = ids.data()};
    const HeadReplacements replacements{
        .heads = {{a.layers - 1, a.heads - 1, ReplacementKind::kSymbolicOnly}}};
    for (const HeadReplacements* asked :
         {static_cast<const HeadReplacements*>(nullptr), &replacements}) {
      request.replacements = asked;
      ForwardPass pass = MakePass();
      const auto expected = Logits(pass, *model, request);

      // Runs the rest of the pass with buffers of its own, while the pass is there.
      class Resume : public ForwardObserver {
       public:
        Resume(const Model& model, ForwardRequest request, ForwardPass* pass)
            : model_(model), request_(request), pass_(*pass) {}
        Interest interest() const override { return {.residual = true}; }
        void OnResidual(int64_t layer, const MatrixView& rows) override {
          request_.residual = &rows;
          request_.first_layer = layer;
          request_.ids = nullptr;
          found.push_back(Logits(pass_, model_, request_));
        }
        std::vector<std::vector<double>> found;

       private:
        const Model& model_;
        ForwardRequest request_;
        ForwardPass& pass_;
      };
      ForwardPass other = MakePass();
      Resume resume(*model, request, &other);
      request.observer = &resume;
      EXPECT_EQ(Logits(pass, *model, request), expected);
      request.observer = nullptr;
      ASSERT_EQ(resume.found.size(), static_cast<size_t>(a.layers));
      for (const auto& logits : resume.found) EXPECT_EQ(logits, expected);
    }
  }
}

// The same checkpoint with an attention output matrix of zeros in one layer.
std::shared_ptr<const Model> WithoutAttention(const std::string& name, int64_t layer,
                                              const TempFolder& folder) {
  std::filesystem::copy(GoldenPath("models/" + name), folder.Path(name),
                        std::filesystem::copy_options::recursive);
  const std::string file = folder.Path(name + "/model.safetensors");
  std::string bytes = checkpoint::testing::ReadFile(file);
  {
    const auto opened = checkpoint::Checkpoint::Open(folder.Path(name));
    EXPECT_TRUE(opened.ok()) << opened.status();
    const std::string matrix(
        opened->Weight(checkpoint::WeightRole::kAttentionOut, layer).tensor.bytes);
    const size_t at = bytes.find(matrix);
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, matrix.size(), matrix.size(), '\0');
  }
  folder.Write(name + "/model.safetensors", bytes);
  return LoadModel(folder.Path(name), v1::DTYPE_FLOAT64);
}

TEST_P(HeadReplacementTest, AllHeadsOfALayerAtZeroAreALayerWithoutOutputMatrix) {
  const auto model = Load(v1::DTYPE_FLOAT64);
  const auto& a = model->architecture();
  const TempFolder folder;
  const auto without = WithoutAttention(std::get<0>(GetParam()), 0, folder);
  const auto ids = RandomIds(2 * 19, a.vocab_size, 14);
  HeadReplacements replacements;
  for (int64_t head = 0; head < a.heads; ++head) {
    replacements.heads.push_back({0, head, ReplacementKind::kZero});
  }
  ForwardPass pass = MakePass();
  ForwardRequest request{.sequences = 2, .tokens = 19, .ids = ids.data(), .all_logits = true};
  const auto whole = Logits(pass, *model, request);
  const auto expected = Logits(pass, *without, request);
  request.replacements = &replacements;
  EXPECT_LE(MaxDifference(Logits(pass, *model, request), expected), 1e-12);
  EXPECT_GT(MaxDifference(whole, expected), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, HeadReplacementTest,
                         testing::Combine(testing::Values("gptj_partial", "gpt2_tied",
                                                          "gpt_neo_local", "opt", "bloom_h6",
                                                          "mpt_h6", "neox_r25_par", "neox_r25_seq",
                                                          "llama31", "mistral_sw", "qwen2"),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_general" : "_cpu");
                         });

// From tokens to logits, through the layers after the replaced one.
TEST(ReplacedLogitsTest, AgreeWithAModelWrittenDownPlainly) {
  for (const char* name : {"gptj_1head", "gptj_partial"}) {
    const std::string path = GoldenPath(std::string("models/") + name);
    const auto model = LoadModel(path, v1::DTYPE_FLOAT64);
    const auto& a = model->architecture();
    const auto ids = RandomIds(21, a.vocab_size, 15);
    const NaiveModel naive(path);
    for (const auto kind : {ReplacementKind::kZero, ReplacementKind::kPositionalOnly,
                            ReplacementKind::kSymbolicOnly}) {
      for (int64_t layer = 0; layer < a.layers; ++layer) {
        const HeadReplacements replacements{.heads = {{layer, a.heads - 1, kind}}};
        ForwardPass pass;
        EXPECT_LE(MaxDifference(Logits(pass, *model,
                                       {.sequences = 1,
                                        .tokens = 21,
                                        .ids = ids.data(),
                                        .replacements = &replacements}),
                                naive.Logits(ids, &replacements)),
                  1e-10)
            << name << " layer " << layer;
      }
    }
  }
}

TEST(ReplacedLogitsTest, CancellingStopsWithinALayer) {
  const auto model = LoadModel(GoldenPath("models/gptj_partial"), v1::DTYPE_FLOAT32);
  const std::vector<int32_t> ids(17, 1);
  class CancelAtLayer1 : public ForwardObserver {
   public:
    Interest interest() const override { return {.residual = true}; }
    void OnResidual(int64_t layer, const MatrixView&) override {
      last_layer = layer;
      if (layer == 1) flag.Cancel();
    }
    engine::CancelFlag flag;
    int64_t last_layer = -1;
  };
  for (const bool general : {false, true}) {
    for (const auto kind : {ReplacementKind::kZero, ReplacementKind::kPositionalOnly}) {
      CancelAtLayer1 observer;
      const HeadReplacements replacements{.heads = {{0, 0, kind}}};
      ForwardPass pass({.general_operators = general});
      EXPECT_EQ(pass.Run(*model, {.sequences = 1,
                                  .tokens = 17,
                                  .ids = ids.data(),
                                  .replacements = &replacements,
                                  .observer = &observer,
                                  .cancel = &observer.flag})
                    .status()
                    .code(),
                absl::StatusCode::kCancelled);
      EXPECT_EQ(observer.last_layer, 1);
    }
  }
}

}  // namespace
}  // namespace hopscope::golden
