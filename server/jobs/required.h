// Rows that must be there, such as the cell of a unit.
#ifndef HOPSCOPE_SERVER_JOBS_REQUIRED_H_
#define HOPSCOPE_SERVER_JOBS_REQUIRED_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace hopscope::jobs {

// The row; DATA_LOSS where the store has none.
template <typename Row>
absl::StatusOr<Row> Required(absl::StatusOr<std::optional<Row>> row, absl::string_view what) {
  if (!row.ok()) return std::move(row).status();
  if (!row->has_value()) {
    return common::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                             absl::StrCat("the store lacks a ", what, " that must be there"));
  }
  return **std::move(row);
}

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_REQUIRED_H_
