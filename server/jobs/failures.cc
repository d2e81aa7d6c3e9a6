#include "server/jobs/failures.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/spec/text.h"
#include "common/utf8.h"

namespace hopscope::jobs {
namespace {

constexpr size_t kMaxMessageBytes = 1024;

constexpr absl::string_view kAttemptReasons[] = {kWorkerLost, kTimeout,  kOutOfMemory,
                                                 kCheckpoint, kInternal, kPreempted};

}  // namespace

v1::Failure MakeFailure(absl::string_view reason, absl::string_view message) {
  v1::Failure failure;
  failure.set_reason(std::string(reason));
  failure.set_message(
      std::string(common::CutUtf8(common::ReplaceInvalidUtf8(message), kMaxMessageBytes)));
  return failure;
}

v1::Failure BoundAttemptFailure(const v1::Failure& reported) {
  if (std::find(std::begin(kAttemptReasons), std::end(kAttemptReasons), reported.reason()) !=
      std::end(kAttemptReasons)) {
    return MakeFailure(reported.reason(), reported.message());
  }
  return MakeFailure(kInternal, absl::StrCat("unknown reason ", spec::Quoted(reported.reason()),
                                             ": ", reported.message()));
}

}  // namespace hopscope::jobs
