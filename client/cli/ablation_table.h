// What ablations cost, as tables for a terminal, with a sentence that says what they show.
//
// A drop in accuracy counts where it is above kCountingDrop and above two of its standard errors.
// Heads are needed where the drop without them (kind "zero", else "mean") counts at some hop count.
#ifndef HOPSCOPE_CLIENT_CLI_ABLATION_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_ABLATION_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

inline constexpr double kCountingDrop = 0.05;

// Whether AblationTables shows this: metric "accuracy_drop" of scorer "ablation".
bool IsAblationDrop(const v1::HeadScores& scores);

// One table for each checkpoint, task, seed and number of added tokens, in the order of the scores;
// hop counts across. Sets of heads have a row each for every kind; where each head was replaced by
// itself, those without a drop that counts are left out.
std::vector<std::string> AblationTables(const std::vector<v1::HeadScores>& scores, size_t width);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_ABLATION_TABLE_H_
