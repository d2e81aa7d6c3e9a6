#include "client/cli/test_events.h"

#include <cmath>

namespace hopscope::cli {

v1::Cell MakeCell(int32_t index, int32_t hops, int32_t added_tokens, const std::string& checkpoint,
                  const std::string& task, int64_t seed) {
  v1::Cell cell;
  cell.set_index(index);
  cell.set_checkpoint(checkpoint);
  cell.set_task(task);
  cell.set_hops(hops);
  cell.set_added_tokens(added_tokens);
  cell.set_seed(seed);
  return cell;
}

v1::CellResult MakeResult(const v1::Cell& cell, int64_t items, int64_t correct) {
  v1::CellResult result;
  *result.mutable_cell() = cell;
  result.set_state(v1::CellResult::STATE_COMPLETED);
  result.set_items(items);
  result.set_correct(correct);
  const double n = static_cast<double>(items);
  const double accuracy = static_cast<double>(correct) / n;
  result.set_accuracy(accuracy);
  if (items > 1) result.set_standard_error(std::sqrt(accuracy * (1 - accuracy) / (n - 1)));
  result.set_ci_low(accuracy * 0.99);
  result.set_ci_high(accuracy + (1 - accuracy) * 0.01);
  return result;
}

v1::CellResult MakeFailedResult(const v1::Cell& cell, const std::string& reason,
                                const std::string& message) {
  v1::CellResult result;
  *result.mutable_cell() = cell;
  result.set_state(v1::CellResult::STATE_FAILED);
  result.mutable_failure()->set_reason(reason);
  result.mutable_failure()->set_message(message);
  return result;
}

v1::HeadScores MakeScores(const v1::Cell& cell, const std::string& metric, int32_t layers,
                          int32_t heads, const std::vector<double>& means) {
  v1::HeadScores scores;
  *scores.mutable_cell() = cell;
  scores.set_scorer("positional_symbolic");
  (*scores.mutable_params()->mutable_fields())["tau"].set_number_value(1e-4);
  (*scores.mutable_params()->mutable_fields())["queries"].set_string_value("last");
  scores.set_metric(metric);
  scores.set_layers(layers);
  scores.set_heads(heads);
  for (const double mean : means) {
    scores.add_mean(mean);
    scores.add_standard_error(0.01);
    scores.add_items(100);
  }
  return scores;
}

v1::EvalEvent StateEvent(int64_t sequence, v1::EvalJob::State state) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.set_sequence(sequence);
  event.mutable_job_state_changed()->set_state(state);
  return event;
}

v1::EvalEvent CellEvent(int64_t sequence, const v1::CellResult& result) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.set_sequence(sequence);
  *event.mutable_cell_completed()->mutable_result() = result;
  return event;
}

v1::EvalEvent ProgressEvent(int64_t done, int64_t total, double per_second) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.mutable_cell_progress()->set_job_items_done(done);
  event.mutable_cell_progress()->set_job_items_total(total);
  event.mutable_cell_progress()->set_items_per_second(per_second);
  return event;
}

v1::EvalEvent FinishedEvent(int64_t sequence, v1::EvalJob::State state,
                            const v1::JobTotals& totals) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.set_sequence(sequence);
  event.mutable_job_finished()->set_state(state);
  *event.mutable_job_finished()->mutable_totals() = totals;
  return event;
}

v1::EvalJob MakeJob(int64_t cells, int64_t items) {
  v1::EvalJob job;
  job.set_name("jobs/1");
  job.set_state(v1::EvalJob::STATE_RUNNING);
  job.mutable_totals()->set_cells(cells);
  job.mutable_totals()->set_items(items);
  return job;
}

}  // namespace hopscope::cli
