// A stub for tests whose answers the test gives.
#ifndef HOPSCOPE_CLIENT_MOCK_STUB_H_
#define HOPSCOPE_CLIENT_MOCK_STUB_H_

#include <memory>

#include "client/stub.h"
#include "gmock/gmock.h"

namespace hopscope::client {

class MockStub : public EvaluationStub {
 public:
  MOCK_METHOD(absl::StatusOr<v1::CreateEvalJobResponse>, CreateEvalJob,
              (grpc::ClientContext&, const v1::CreateEvalJobRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::GetEvalJobResponse>, GetEvalJob,
              (grpc::ClientContext&, const v1::GetEvalJobRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ListEvalJobsResponse>, ListEvalJobs,
              (grpc::ClientContext&, const v1::ListEvalJobsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::CancelEvalJobResponse>, CancelEvalJob,
              (grpc::ClientContext&, const v1::CancelEvalJobRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ListEvalResultsResponse>, ListEvalResults,
              (grpc::ClientContext&, const v1::ListEvalResultsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::GetCapabilitiesResponse>, GetCapabilities,
              (grpc::ClientContext&, const v1::GetCapabilitiesRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ListCheckpointsResponse>, ListCheckpoints,
              (grpc::ClientContext&, const v1::ListCheckpointsRequest&), (override));
  MOCK_METHOD(absl::StatusOr<v1::UploadTokensResponse>, UploadTokens,
              (grpc::ClientContext&, const PieceReader&), (override));
  MOCK_METHOD(std::unique_ptr<EventStream>, WatchEvalJob,
              (std::unique_ptr<grpc::ClientContext>, const v1::WatchEvalJobRequest&), (override));
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_MOCK_STUB_H_
