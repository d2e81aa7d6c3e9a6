#include "client/cli/json_text.h"

#include "common/status.h"
#include "gtest/gtest.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {
namespace {

TEST(JsonTextTest, MessagesAreOneLineInTheJsonMapping) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.set_sequence(3);
  event.mutable_job_finished()->set_state(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(MessageJson(event),
            R"({"job":"jobs/1","sequence":"3","jobFinished":{"state":"STATE_SUCCEEDED"}})");
  EXPECT_EQ(MessageJson(v1::ListEvalJobsResponse()), "{}");
}

TEST(JsonTextTest, ErrorsHaveCodeReasonFieldAndMessage) {
  EXPECT_EQ(ErrorJson(common::InvalidField("BAD_HOPS", "spec.tasks[0].hops[1]", "9", "1 to 4")),
            R"({"error":{"code":"INVALID_ARGUMENT","reason":"BAD_HOPS",)"
            R"("message":"spec.tasks[0].hops[1]: 9 is not allowed; 1 to 4",)"
            R"("allowed":"1 to 4","field":"spec.tasks[0].hops[1]","value":"9"}})");
  EXPECT_EQ(ErrorJson(absl::UnavailableError("a\nb\xff")),
            "{\"error\":{\"code\":\"UNAVAILABLE\",\"reason\":\"UNAVAILABLE\",\"message\":"
            "\"a\\nb\xef\xbf\xbd\"}}");
}

}  // namespace
}  // namespace hopscope::cli
