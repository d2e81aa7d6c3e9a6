#include "client/job_state.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hopscope::client {

bool IsFinal(v1::EvalJob::State state) {
  switch (state) {
    case v1::EvalJob::STATE_SUCCEEDED:
    case v1::EvalJob::STATE_FAILED:
    case v1::EvalJob::STATE_CANCELLED:
    case v1::EvalJob::STATE_PARTIALLY_SUCCEEDED:
      return true;
    default:
      return false;
  }
}

std::string StateName(v1::EvalJob::State state) {
  if (!v1::EvalJob::State_IsValid(state)) return absl::StrCat("STATE ", static_cast<int>(state));
  return std::string(absl::StripPrefix(v1::EvalJob::State_Name(state), "STATE_"));
}

}  // namespace hopscope::client
