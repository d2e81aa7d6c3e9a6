// A connection for tests whose answers the test gives.
#ifndef HOPSCOPE_CLIENT_MOCK_CONNECTION_H_
#define HOPSCOPE_CLIENT_MOCK_CONNECTION_H_

#include <memory>

#include "client/connection.h"
#include "gmock/gmock.h"

namespace hopscope::client {

class MockConnection : public Connection {
 public:
  MOCK_METHOD(absl::StatusOr<v1::CreateEvalJobResponse>, CreateEvalJob,
              (const v1::CreateEvalJobRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::GetEvalJobResponse>, GetEvalJob, (const v1::GetEvalJobRequest&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::ListEvalJobsResponse>, ListEvalJobs,
              (const v1::ListEvalJobsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::CancelEvalJobResponse>, CancelEvalJob,
              (const v1::CancelEvalJobRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ListEvalResultsResponse>, ListEvalResults,
              (const v1::ListEvalResultsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::GetCapabilitiesResponse>, GetCapabilities,
              (const v1::GetCapabilitiesRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ListCheckpointsResponse>, ListCheckpoints,
              (const v1::ListCheckpointsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::UploadTokensResponse>, UploadTokens, (const PieceReader&),
              (override));
  MOCK_METHOD(std::unique_ptr<EventReader>, WatchEvalJob, (const v1::WatchEvalJobRequest&),
              (override));
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_MOCK_CONNECTION_H_
