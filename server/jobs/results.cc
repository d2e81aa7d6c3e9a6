#include "server/jobs/results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"
#include "server/jobs/merge.h"

namespace hopscope::jobs {
namespace {

// Cells that are looked at together.
constexpr int kCellBatch = 64;

// A row's bytes within the response: its own, its tag and its length.
template <typename Row>
int64_t RowBytes(const Row& row) {
  return static_cast<int64_t>(row.ByteSizeLong()) + 6;
}

// Fills one page row by row.
class PageWriter {
 public:
  PageWriter(int max_rows, int64_t max_bytes) : max_rows_(max_rows), max_bytes_(max_bytes) {}

  // False: the page is full, and the next one begins at this row.
  template <typename Row>
  bool Add(Row row, google::protobuf::RepeatedPtrField<Row>& rows, ResultCursor at) {
    const int64_t bytes = RowBytes(row);
    if (rows_ > 0 && (rows_ >= max_rows_ || bytes_ + bytes >= max_bytes_)) {
      page_.more = true;
      page_.next = at;
      return false;
    }
    ++rows_;
    bytes_ += bytes;
    rows.Add(std::move(row));
    return true;
  }

  ResultPage& page() { return page_; }

 private:
  const int max_rows_;
  const int64_t max_bytes_;
  int rows_ = 0;
  int64_t bytes_ = 0;
  ResultPage page_;
};

// Adds a cell's head scores from `first_row` on. False: the page is full.
bool AddHeads(const v1::Cell& described, const v1::UnitResult& merge, int32_t first_row,
              PageWriter& writer) {
  std::vector<v1::HeadScores> heads = SummariseHeads(merge, described);
  for (int32_t row = std::max(first_row, 1); row <= static_cast<int32_t>(heads.size()); ++row) {
    if (!writer.Add(std::move(heads[row - 1]), *writer.page().response.mutable_heads(),
                    {.cell = described.index(), .row = row})) {
      return false;
    }
  }
  return true;
}

}  // namespace

v1::Cell DescribeCell(const store::JobPlanRow& plan, const store::CellRow& cell) {
  v1::Cell described;
  described.set_index(cell.index);
  described.set_checkpoint(plan.checkpoints[cell.checkpoint].ref.name());
  described.set_task(plan.spec.tasks(cell.task).task());
  described.set_hops(cell.hops);
  described.set_added_tokens(cell.added_tokens);
  described.set_seed(cell.seed);
  described.set_tokens_digest(plan.spec.tasks(cell.task).tokens_digest());
  return described;
}

v1::CellResult MakeCellResult(const store::JobPlanRow& plan, const store::CellRow& cell) {
  v1::CellResult result;
  *result.mutable_cell() = DescribeCell(plan, cell);
  result.set_state(cell.state);
  SummariseAnswers(cell.scored_items, cell.failed_items, cell.correct_items, cell.unlabelled_items,
                   result);
  if (!cell.failure.reason().empty()) *result.mutable_failure() = cell.failure;
  return result;
}

absl::StatusOr<ResultPage> ReadResults(store::ReadTransaction& transaction,
                                       const store::JobRow& job, const store::JobPlanRow& plan,
                                       ResultCursor from, int max_rows, int64_t max_bytes,
                                       bool cells_only) {
  PageWriter writer(max_rows, max_bytes);
  for (;;) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::CellRow> cells,
                              transaction.FinishedCells(job.key, from.cell, kCellBatch));
    for (const store::CellRow& cell : cells) {
      const int32_t first_row = cell.index == from.cell ? from.row : 0;
      v1::CellResult result = MakeCellResult(plan, cell);
      const v1::Cell described = result.cell();
      if (first_row == 0 && !writer.Add(std::move(result), *writer.page().response.mutable_cells(),
                                        {.cell = cell.index, .row = 0})) {
        return std::move(writer.page());
      }
      if (cells_only || cell.state != v1::CellResult::STATE_COMPLETED) continue;
      HOPSCOPE_ASSIGN_OR_RETURN(const v1::UnitResult merge,
                                transaction.GetMerge(job.key, cell.index));
      if (!AddHeads(described, merge, first_row, writer)) return std::move(writer.page());
    }
    if (cells.size() < kCellBatch) return std::move(writer.page());
    from = {.cell = cells.back().index + 1, .row = 0};
  }
}

}  // namespace hopscope::jobs
