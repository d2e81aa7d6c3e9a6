// What the logits after a sequence say of its label: whether it is the answer, and its cross
// entropy in nats, ln(sum over the vocabulary of e^l) - l_label, in float64 whatever the logits
// are.
//
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_ANSWER_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_ANSWER_H_

#include <cstdint>

#include "worker/engine/model/activations.h"

namespace hopscope::engine {

// What one row of logits says.
struct Answer {
  bool finite = false;   // every logit is; nothing else holds where it is false
  bool correct = false;  // the label has the largest logit, the lowest id on ties
  double loss = 0;       // of the label
};

// `label` is below logits.columns; negative: not known, and only `finite` is filled in.
Answer AnswerOf(const MatrixView& logits, int64_t row, int32_t label);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_ANSWER_H_
