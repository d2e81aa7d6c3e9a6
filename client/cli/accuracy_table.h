// Accuracy of a job's cells as tables for a terminal: hop counts down, added tokens across.
#ifndef HOPSCOPE_CLIENT_CLI_ACCURACY_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_ACCURACY_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

// One table for each task, checkpoint and seed, in the order of the cells. Each says how many
// sequences a figure rests on, and its standard error; columns that do not fit into `width` follow
// below.
std::vector<std::string> AccuracyTables(const std::vector<v1::CellResult>& cells, size_t width);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_ACCURACY_TABLE_H_
