// Runs the items of a unit through a model and hands what happens there to its scorers.
//
// Items are cut into micro-batches of one length, by rules that know the unit, the model and the
// kind of device alone; each micro-batch is computed by one thread. So results do not depend on how
// many threads there are, nor on what else runs: bit for bit.
#ifndef HOPSCOPE_WORKER_ENGINE_EVALUATION_H_
#define HOPSCOPE_WORKER_ENGINE_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/model.h"
#include "worker/engine/scorers/scorer.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {

// Sequences of `tokens` tokens that a micro-batch of this model holds, at least 1.
int64_t MicroBatchSize(const checkpoint::Architecture& architecture, const Device& device,
                       int64_t tokens);

// The micro-batches of a unit: items of one length each, shorter lengths first, items in their
// order.
std::vector<std::vector<int64_t>> PlanMicroBatches(const checkpoint::Architecture& architecture,
                                                   const Device& device,
                                                   const SequenceSource& source);

struct Evaluation {
  const Model* model = nullptr;
  const SequenceSource* source = nullptr;
  std::vector<Scorer*> scorers;
  const CancelFlag* cancel = nullptr;  // may be null
};

// Blocks until every item has gone through every scorer. Sequences, tokens, forward_seconds and
// score_seconds are added to `statistics`, which may be null. Errors are those of ForwardPass and
// of the source; CANCELLED.
absl::Status Evaluate(const Evaluation& evaluation, ComputePool* pool, RunStatistics* statistics);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_EVALUATION_H_
