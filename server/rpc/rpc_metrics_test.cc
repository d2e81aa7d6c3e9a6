#include "server/rpc/rpc_metrics.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "hopscope/v1/admin.pb.h"
#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::rpc {
namespace {

using ::testing::ElementsAreArray;

TEST(MethodNames, AreThoseOfTheProtoFiles) {
  std::vector<std::string> names;
  for (const google::protobuf::Descriptor* message :
       {v1::EvalJob::descriptor(), v1::UnitLease::descriptor(), v1::Worker::descriptor()}) {
    const google::protobuf::FileDescriptor* file = message->file();
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        names.push_back(
            absl::StrCat(file->service(s)->name(), "/", file->service(s)->method(m)->name()));
      }
    }
  }
  EXPECT_THAT(MethodNames(), ElementsAreArray(names));
  EXPECT_EQ(MethodName(Method::kGetQueueStatus), "AdminService/GetQueueStatus");
}

TEST(RpcMetrics, CountsByMethodAndCodeAndAddsNoSeries) {
  prometheus::Registry registry;
  RpcMetrics metrics(registry);
  const auto count_series = [&registry] {
    size_t series = 0;
    for (const prometheus::MetricFamily& family : registry.Collect())
      series += family.metric.size();
    return series;
  };
  const size_t before = count_series();
  metrics.Record(Method::kListUnits, absl::StatusCode::kUnimplemented,
                 std::chrono::milliseconds(3));
  metrics.Record(Method::kListUnits, static_cast<absl::StatusCode>(99), std::chrono::seconds(100));
  EXPECT_EQ(count_series(), before);

  std::map<std::string, double> nonzero;
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    if (family.name != "hopscope_rpc_requests_total") continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      if (metric.counter.value == 0) continue;
      std::string labels;
      for (const auto& label : metric.label) absl::StrAppend(&labels, label.value, " ");
      nonzero[labels] = metric.counter.value;
    }
  }
  EXPECT_EQ(nonzero,
            (std::map<std::string, double>{{"UNIMPLEMENTED EvaluationService/ListUnits ", 1.0},
                                           {"UNKNOWN EvaluationService/ListUnits ", 1.0}}));
}

}  // namespace
}  // namespace hopscope::rpc
