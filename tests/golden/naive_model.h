// A decoder of any family, written down plainly: one loop an index, float64, no batches, no tiles.
// What the engine is compared with where no reference data is stored.
#ifndef HOPSCOPE_TESTS_GOLDEN_NAIVE_MODEL_H_
#define HOPSCOPE_TESTS_GOLDEN_NAIVE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "worker/engine/model/head_replacement.h"

namespace hopscope::golden {

class NaiveModel {
 public:
  using Row = std::vector<double>;
  // Rows of a matrix, one a token.
  using Matrix = std::vector<Row>;

  // A checkpoint folder; ends the test program where it does not open.
  explicit NaiveModel(const std::string& path);

  const checkpoint::Architecture& architecture() const { return checkpoint_.architecture(); }

  // The rows that enter layer 0.
  Matrix Embed(const std::vector<int32_t>& ids) const;

  // Rows that leave a layer, given those that enter it.
  // Heads in `replacements`, which may be null, are replaced (not by means).
  Matrix Layer(int64_t layer, const Matrix& rows,
               const engine::HeadReplacements* replacements = nullptr) const;

  // Attention weights of the last token's query [heads][tokens], given the rows that enter the
  // layer.
  Matrix LastAttention(int64_t layer, const Matrix& rows) const;

  // Logits after the last token, by the rows that leave the last layer, or by the tokens.
  Row Head(const Row& row) const;
  Row Logits(const std::vector<int32_t>& ids,
             const engine::HeadReplacements* replacements = nullptr) const;

 private:
  struct NormWeights {
    Row gain, bias;
  };
  struct LayerWeights {
    NormWeights norm1, norm1_post, norm2, norm2_post;
    Row query, query_bias, key, key_bias, value, value_bias, out, out_bias;
    Row gate, up, up_bias, down, down_bias;
  };

  // Row-major elements; empty where the model has no such weight.
  Row Weight(checkpoint::WeightRole role, int64_t layer) const;
  Row Norm(Row x, const NormWeights& weights) const;
  Row Turn(Row x, int64_t heads, int64_t position) const;
  double Activate(double x) const;
  Row Mlp(const LayerWeights& weights, const Row& x) const;
  // Weights of query i over keys 0..i for one head.
  Row Attend(int64_t layer, int64_t head, const Row& query, const Matrix& keys, int64_t i) const;

  const checkpoint::Checkpoint checkpoint_;
  Row token_embedding_, position_embedding_, head_, head_bias_;
  NormWeights embedding_norm_, final_norm_;
  std::vector<LayerWeights> layers_;
};

}  // namespace hopscope::golden

#endif  // HOPSCOPE_TESTS_GOLDEN_NAIVE_MODEL_H_
