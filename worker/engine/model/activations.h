// What a forward pass shows of itself while it runs, for scorers and for `inspect`.
//
// Views into host memory that the pass reuses: valid during the call alone. All numbers are float64
// where the model computes in that, else float32.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_ACTIVATIONS_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_ACTIVATIONS_H_

#include <cstdint>

namespace hopscope::engine {

// A row-major matrix.
struct MatrixView {
  bool float64 = false;
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;  // elements from one row to the next

  // T is float or double, as `float64` says.
  template <typename T>
  const T* Row(int64_t row) const {
    return static_cast<const T*>(data) + row * stride;
  }
};

// Queries and keys of one layer before position is applied, biases included. Token t of sequence s
// is row s * tokens + t; head h starts at column h * d_head.
struct LayerProjections {
  int64_t layer = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t first_query = 0;  // tokens before it have no query here
  MatrixView queries;       // [sequences * tokens, heads * d_head]
  MatrixView keys;          // [sequences * tokens, kv_heads * d_head]
};

// Attention weights of one head in one sequence for a run of queries: row r is query first_query +
// r, column c key first_key + c. A query's remaining keys have weight 0. Runs come in the order of
// queries.
struct AttentionWeights {
  int64_t layer = 0;
  int64_t head = 0;
  int64_t sequence = 0;
  int64_t first_query = 0;
  int64_t first_key = 0;
  MatrixView weights;
};

// Sees one batch. Called on the thread that runs the pass.
class ForwardObserver {
 public:
  // What it is shown. Showing may cost a copy to host memory.
  struct Interest {
    bool residual = false;
    bool projections = false;
    bool attention = false;
    bool attended = false;
  };

  virtual ~ForwardObserver() = default;

  virtual Interest interest() const { return {}; }

  // Residual stream [sequences * tokens, d_model] entering block `layer`; after the last block it
  // comes with layer = layers, unless the last layer has only the last token's query.
  virtual void OnResidual(int64_t /*layer*/, const MatrixView& /*rows*/) {}
  virtual void OnProjections(const LayerProjections& /*projections*/) {}
  virtual void OnAttention(const AttentionWeights& /*attention*/) {}
  // What the heads of a layer put out, before the output matrix [sequences * tokens, heads *
  // d_head]. Rows of tokens before `first_query` hold nothing.
  virtual void OnAttended(int64_t /*layer*/, int64_t /*first_query*/, const MatrixView& /*rows*/) {}
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_ACTIVATIONS_H_
