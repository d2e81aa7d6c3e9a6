// Heads whose attention output is replaced in a forward pass: what an ablation intervenes with.
//
// Let A_i[a][p] be the logit of query i against content a (a key before position is applied)
// standing in slot p, and let a, p < i run over the keys that query i sees before itself. A head's
// output at i is, instead of the sum over j of softmax_j(A_i[j][j]) v_j:
//   kZero            0
//   kMean            its mean over other sequences, at the same slot
//   kPositionalOnly  the same sum with the logits mean_a A_i[a][j], which know the slot j alone
//   kSymbolicOnly    the same sum with the logits mean_p A_i[j][p], which know the content j alone
// In the last two the query's logit against itself stays. A soft cap on logits is not linear, so
// the two are not defined for models that have one.
//
// Plain data; thread-safe as such.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_HEAD_REPLACEMENT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_HEAD_REPLACEMENT_H_

#include <cstdint>
#include <vector>

namespace hopscope::engine {

enum class ReplacementKind { kZero, kMean, kPositionalOnly, kSymbolicOnly };

struct HeadReplacement {
  int64_t layer = 0;
  int64_t head = 0;
  ReplacementKind kind = ReplacementKind::kZero;
};

// Mean outputs of all heads, before the output matrix: [layers, tokens, heads * d_head]. Where the
// last layer ran for the last token alone, its other rows are 0.
class HeadMeans {
 public:
  HeadMeans(int64_t layers, int64_t tokens, int64_t columns)
      : tokens_(tokens), columns_(columns), values_(layers * tokens * columns, 0) {}

  int64_t tokens() const { return tokens_; }
  int64_t columns() const { return columns_; }
  int64_t bytes() const { return static_cast<int64_t>(values_.size() * sizeof(double)); }

  const double* Row(int64_t layer, int64_t token) const {
    return values_.data() + (layer * tokens_ + token) * columns_;
  }
  std::vector<double>& values() { return values_; }

 private:
  int64_t tokens_;
  int64_t columns_;
  std::vector<double> values_;
};

// All replacements of one pass.
struct HeadReplacements {
  std::vector<HeadReplacement> heads;  // each head once
  const HeadMeans* means = nullptr;    // for sequences of this length; only kMean needs it

  // Null where the head stays as it is.
  const HeadReplacement* Find(int64_t layer, int64_t head) const {
    for (const HeadReplacement& one : heads) {
      if (one.layer == layer && one.head == head) return &one;
    }
    return nullptr;
  }
};

// Keys that query i sees before itself in a layer with this window (0: none).
inline int64_t KeysBefore(int64_t query, int64_t window) {
  return window > 0 && query > window - 1 ? window - 1 : query;
}

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_HEAD_REPLACEMENT_H_
