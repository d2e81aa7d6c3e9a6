// For tests: a job service and a dispatcher on a SQLite file in a temporary folder, with small
// models, and a clock that stands still until it is told to move.
#ifndef HOPSCOPE_SERVER_JOBS_TESTING_JOBS_FIXTURE_H_
#define HOPSCOPE_SERVER_JOBS_TESTING_JOBS_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/checkpoint/model_root.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/clock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/job_service.h"
#include "server/jobs/signals.h"
#include "server/store/sqlite_store.h"

namespace hopscope::jobs::testing {

// Sequences this long make units of a few dozen items, even of the smallest models.
inline constexpr int32_t kLongPadding = 5000;

// A message as bytes, in which every bit of its numbers shows: equal where the messages are.
std::string Bits(const google::protobuf::Message& message);

// A spec of one task entry: task number, one hop, kLongPadding, 100 sequences, checkpoint "number",
// accuracy.
v1::EvalJobSpec SmallSpec();
// The same with the positional and symbolic scores.
v1::EvalJobSpec ScoredSpec();

class JobsTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(30);

  // Writes models "number" (137 token ids), "letter" (129), and the series "series/step-1" to
  // "series/step-3" (137).
  JobsTest();

  // Ends the programs and starts them again on the same file.
  void Reopen();

  // Creates a job that must be accepted; returns its name.
  std::string Create(const v1::EvalJobSpec& spec, const std::string& request_id = "");
  absl::StatusOr<v1::CreateEvalJobResponse> TryCreate(const v1::EvalJobSpec& spec,
                                                      const std::string& request_id = "",
                                                      bool validate_only = false);
  v1::EvalJob Get(const std::string& job);
  absl::StatusOr<v1::EvalJob> Cancel(const std::string& job);
  std::vector<v1::EvalEvent> Events(const std::string& job, int64_t after_sequence = 0);
  // All pages.
  v1::ListEvalResultsResponse Results(const std::string& job);
  // Bits of all results.
  std::string ResultBits(const std::string& job);

  checkpoint::testing::TempFolder folder_;
  checkpoint::testing::TempFolder models_folder_;
  common::FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  Signals signals_;
  Dispatcher::Options dispatcher_options_{.lease_duration = kLease};
  JobService::Options service_options_;
  std::unique_ptr<checkpoint::ModelRoot> models_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<JobService> service_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace hopscope::jobs::testing

#endif  // HOPSCOPE_SERVER_JOBS_TESTING_JOBS_FIXTURE_H_
