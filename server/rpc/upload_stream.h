// One UploadTokens call: takes the pieces in one after another, each on the executor, and asks for
// the next piece only when the last one is stored, so that a fast client costs no memory.
//
// A piece's error ends the call at once. An upload that did not end well is deleted, on the
// executor too. Thread-safe; keeps itself alive until OnDone.
#ifndef HOPSCOPE_SERVER_RPC_UPLOAD_STREAM_H_
#define HOPSCOPE_SERVER_RPC_UPLOAD_STREAM_H_

#include <memory>
#include <optional>

#include "common/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/uploaded_tokens.h"
#include "server/rpc/call_record.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

class UploadStream : public grpc::ServerReadReactor<v1::UploadTokensRequest>,
                     public OpenCall,
                     public std::enable_shared_from_this<UploadStream> {
 public:
  // Most bytes of a piece.
  static constexpr size_t kMaxPieceBytes = 1 << 20;

  // All pointers must outlive the stream; context and response belong to the call.
  UploadStream(Runtime* runtime, jobs::UploadedTokens* tokens, const CallRecord& record,
               grpc::CallbackServerContext* context, v1::UploadTokensResponse* response);

  void Start();

  void End(const absl::Status& status) override;
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Takes the piece that was read, or the end of them.
  void Work(bool last);
  void FinishOnce(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Runtime* const runtime_;
  jobs::UploadedTokens* const tokens_;
  const CallRecord record_;
  grpc::CallbackServerContext* const context_;
  v1::UploadTokensResponse* const response_;

  // Used by one at a time: gRPC while a piece is read, then the executor.
  v1::UploadTokensRequest piece_;
  std::unique_ptr<jobs::UploadedTokens::Upload> upload_;

  common::Mutex mutex_;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_with_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<UploadStream> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_UPLOAD_STREAM_H_
