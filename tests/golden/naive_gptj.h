// GPT-J, written down plainly: one loop an index, float64, no batches, no tiles. What the engine is
// compared with where no reference data is stored.
#ifndef HOPSCOPE_TESTS_GOLDEN_NAIVE_GPTJ_H_
#define HOPSCOPE_TESTS_GOLDEN_NAIVE_GPTJ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "worker/engine/model/head_replacement.h"

namespace hopscope::golden {

class NaiveGptJ {
 public:
  // Rows of a matrix, one a token.
  using Matrix = std::vector<std::vector<double>>;

  // A GPT-J checkpoint folder; ends the test program where it does not open.
  explicit NaiveGptJ(const std::string& path);

  const checkpoint::Architecture& architecture() const { return checkpoint_.architecture(); }

  // Token embeddings: the rows that enter layer 0.
  Matrix Embed(const std::vector<int32_t>& ids) const;

  // Rows that leave a layer, given those that enter it.
  // Heads in `replacements`, which may be null, are replaced (not by means).
  Matrix Layer(int64_t layer, const Matrix& rows,
               const engine::HeadReplacements* replacements = nullptr) const;

  // Attention weights of the last token's query [heads][tokens], given the rows that enter the
  // layer.
  Matrix LastAttention(int64_t layer, const Matrix& rows) const;

  // Logits after the last token.
  std::vector<double> Logits(const std::vector<int32_t>& ids,
                             const engine::HeadReplacements* replacements = nullptr) const;

 private:
  struct LayerWeights {
    std::vector<double> gain, bias, query, key, value, out, up, up_bias, down, down_bias;
  };

  std::vector<double> Weight(checkpoint::WeightRole role, int64_t layer) const;
  std::vector<double> Norm(const std::vector<double>& x, const std::vector<double>& gain,
                           const std::vector<double>& bias) const;
  std::vector<double> Turn(std::vector<double> x, int64_t position) const;
  // Weights of query i over keys 0..i for one head.
  std::vector<double> Attend(int64_t head, const std::vector<double>& query, const Matrix& keys,
                             int64_t i) const;

  const checkpoint::Checkpoint checkpoint_;
  std::vector<LayerWeights> layers_;
};

}  // namespace hopscope::golden

#endif  // HOPSCOPE_TESTS_GOLDEN_NAIVE_GPTJ_H_
