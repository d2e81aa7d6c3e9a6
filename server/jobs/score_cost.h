// What scores cost beside the forward pass, roughly: enough to cut a job into units of similar
// size.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_SCORE_COST_H_
#define HOPSCOPE_SERVER_JOBS_SCORE_COST_H_

#include <cstdint>

#include "common/checkpoint/architecture.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::jobs {

// Floating-point operations of a scorer (with every parameter filled in) over one sequence of
// `tokens` tokens with `hops` hops.
double ScorerFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                   int64_t tokens, int32_t hops);

// Whether the forward pass must give it the queries of every token in every layer.
bool NeedsEveryQuery(const v1::ScorerSpec& scorer);

// Number of metrics that a scorer yields for each cell, counting every value of its parameters that
// list several.
int64_t ScorerMetrics(const v1::ScorerSpec& scorer);

// Numbers that these are for a model: one for each head, plane or slot of the window that the
// scorer tells apart.
int64_t ScorerValues(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                     int64_t slots);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_SCORE_COST_H_
