// Runs a model over a batch of token sequences of one length: one pass for all decoder families,
// driven by checkpoint::Architecture.
//
// A row of the result depends on its sequence and the model alone, bit for bit on CPUs: not on the
// other sequences, nor how many there are, nor on what the object computed before. A NaN stays
// within its sequence. Memory is bounded: attention weights are made for a run of queries at a
// time, and no [tokens, tokens] matrix is ever held.
//
// An object is used by one thread at a time; it keeps its buffers from call to call. Errors:
// INVALID_ARGUMENT for token ids outside the vocabulary, FAILED_PRECONDITION (CHECKPOINT) for
// sequences that the model has no positions for, CANCELLED, RESOURCE_EXHAUSTED (OUT_OF_MEMORY),
// INTERNAL.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_FORWARD_PASS_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_FORWARD_PASS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/activations.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/model.h"

namespace hopscope::engine {

struct ForwardRequest {
  int64_t sequences = 0;
  int64_t tokens = 0;            // of each sequence
  const int32_t* ids = nullptr;  // [sequences * tokens]
  // Where it is given, the pass begins at block `first_layer` with these rows [sequences * tokens,
  // d_model] of the residual stream, as an observer sees them, and looks at no ids.
  const MatrixView* residual = nullptr;
  int64_t first_layer = 0;
  // Heads whose output is something else than what their attention gives; may be null.
  const HeadReplacements* replacements = nullptr;
  // Logits for every token, or for the last one of each sequence.
  bool all_logits = false;
  // The last layer's queries for every token (all_logits implies it), or for the last one alone:
  // all that the last token's logits need.
  bool all_queries = false;
  ForwardObserver* observer = nullptr;  // may be null
  const CancelFlag* cancel = nullptr;   // may be null
};

class ForwardPass {
 public:
  struct Options {
    // Computes with LibTorch's general operators where hand-written CPU loops would be used: what
    // runs on other devices, on a CPU.
    bool general_operators = false;
  };

  explicit ForwardPass(Options options);
  ForwardPass() : ForwardPass(Options{}) {}
  ~ForwardPass();

  // Logits [sequences * tokens or sequences, vocab], valid until the next call.
  absl::StatusOr<MatrixView> Run(const Model& model, const ForwardRequest& request);

  // Bytes of buffers that a batch needs in float64; float32 takes half.
  static int64_t BufferBytes(const checkpoint::Architecture& architecture, int64_t rows);

 private:
  class Impl;
  const Options options_;
  std::unique_ptr<Impl> impl_;
  bool general_ = false;  // whether impl_ uses LibTorch's general operators
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_FORWARD_PASS_H_
