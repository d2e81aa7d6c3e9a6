// Scores other than positional and symbolic by layer as tables for a terminal: metrics across,
// layers down.
//
// A metric with a value for each plane of a rotary embedding shows the plane with the largest mean,
// counted from 1 as in arXiv 2605.31558, Table 1; max_logit of frequency_use also the weighted ID
// (common/scores/weighted_id.h). A metric with extremes shows its smallest value as well.
#ifndef HOPSCOPE_CLIENT_CLI_METRIC_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_METRIC_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/layer_table.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

// Whether MetricTables shows this: a score of each head of a scorer other than positional_symbolic.
bool IsMetricScore(const v1::HeadScores& scores);

// One table for each checkpoint, task, seed, number of added tokens, scorer and set of parameters,
// in the order of the scores; what does not fit into the width below. `gamma` is not used.
std::vector<std::string> MetricTables(const std::vector<v1::HeadScores>& scores,
                                      const LayerTableOptions& options);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_METRIC_TABLE_H_
