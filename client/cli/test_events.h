// Events, cells and scores for tests.
#ifndef HOPSCOPE_CLIENT_CLI_TEST_EVENTS_H_
#define HOPSCOPE_CLIENT_CLI_TEST_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

v1::Cell MakeCell(int32_t index, int32_t hops, int32_t added_tokens,
                  const std::string& checkpoint = "number/step-06750",
                  const std::string& task = "number", int64_t seed = 42);

// With the standard error that goes with it, and an interval around it.
v1::CellResult MakeResult(const v1::Cell& cell, int64_t items, int64_t correct);
v1::CellResult MakeFailedResult(const v1::Cell& cell, const std::string& reason,
                                const std::string& message);

// Of scorer positional_symbolic with tau 1e-4; mean, standard error 0.01 and 100 items for each
// value.
v1::HeadScores MakeScores(const v1::Cell& cell, const std::string& metric, int32_t layers,
                          int32_t heads, const std::vector<double>& means);

v1::EvalEvent StateEvent(int64_t sequence, v1::EvalJob::State state);
v1::EvalEvent CellEvent(int64_t sequence, const v1::CellResult& result);
v1::EvalEvent ProgressEvent(int64_t done, int64_t total, double per_second);
v1::EvalEvent FinishedEvent(int64_t sequence, v1::EvalJob::State state,
                            const v1::JobTotals& totals);

// Running, of `cells` cells with `items` items in all.
v1::EvalJob MakeJob(int64_t cells, int64_t items);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_TEST_EVENTS_H_
