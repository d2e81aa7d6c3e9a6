// Results as rows of named values, the same for JSON and CSV.
#ifndef HOPSCOPE_CLIENT_CLI_RESULT_ROWS_H_
#define HOPSCOPE_CLIENT_CLI_RESULT_ROWS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "hopscope/v1/evaluation.pb.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {

// The keys of a row of cells and of heads, in order. Rows of heads have "min" and "max" only where
// the metric has them.
const std::vector<std::string>& CellKeys();
const std::vector<std::string>& HeadKeys();

// An object with CellKeys.
nlohmann::ordered_json CellRow(const v1::CellResult& result);

// Calls on_row with an object with HeadKeys for each head; once, without layer and head, where the
// scores are of whole sequences. DATA_LOSS where arrays and sizes
// contradict each other.
absl::Status ForEachHeadRow(
    const v1::HeadScores& scores,
    const std::function<absl::Status(const nlohmann::ordered_json&)>& on_row);

// One line of CSV (RFC 4180), with its end; empty fields for keys that a row lacks.
std::string CsvHeader(const std::vector<std::string>& keys);
std::string CsvLine(const std::vector<std::string>& keys, const nlohmann::ordered_json& row);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_RESULT_ROWS_H_
