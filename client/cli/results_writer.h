// Writes what a job found: results.json, cells.csv and heads.csv.
//
// results.json is one object with the keys, in this order, "job" (name, state, times, totals,
// warnings, failure, failed cells), "spec", "versions", "checkpoints", "cells" and "heads"; each
// cell and head is one line. The CSV files have the keys of cells and heads as their header. Rows
// come in the order of the plan, heads row-major over steps, layers, heads and planes, all counted
// from 0; nothing in a row depends on when or where it was computed. Numbers read back exactly;
// what does not apply is null, or empty in CSV.
//
// Rows go to disk as they come; memory does not grow with the number of heads. Files appear under
// their names only when all of them are complete: until then they have temporary names in the same
// folder, which the destructor removes. Not thread-safe.
#ifndef HOPSCOPE_CLIENT_CLI_RESULTS_WRITER_H_
#define HOPSCOPE_CLIENT_CLI_RESULTS_WRITER_H_

#include <cstdio>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hopscope/v1/evaluation.pb.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {

struct ResultsHeader {
  v1::EvalJob job;
  std::string client_version;
  // Empty: not known.
  std::string server_version;
};

class ResultsWriter {
 public:
  virtual ~ResultsWriter() = default;

  // Pages in the order in which the server gives them. DATA_LOSS where a page contradicts itself.
  virtual absl::Status Add(const v1::ListEvalResultsResponse& page) = 0;

  // The job as it is at the end. Once; nothing is added after that.
  virtual absl::Status Finish(const ResultsHeader& header) = 0;
};

// Creates the folder where it is missing, and checks that it can be written to. Errors name the
// path.
absl::StatusOr<std::unique_ptr<ResultsWriter>> WriteResultsTo(const std::string& folder);

// results.json alone, to a stream that must outlive the writer.
std::unique_ptr<ResultsWriter> WriteResultsTo(std::ostream* stream);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_RESULTS_WRITER_H_
