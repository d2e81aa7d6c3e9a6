// Errors of other parts, told of the request's field that led to them.
#ifndef HOPSCOPE_SERVER_JOBS_FIELD_ERROR_H_
#define HOPSCOPE_SERVER_JOBS_FIELD_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hopscope::jobs {

// The same error with the field's path in front of its message and in its metadata.
absl::Status AtField(const absl::Status& status, absl::string_view field);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_FIELD_ERROR_H_
