#include "server/rpc/upload_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "grpcpp/server_context.h"
#include "server/rpc/call_metadata.h"

namespace hopscope::rpc {

UploadStream::UploadStream(Runtime* runtime, jobs::UploadedTokens* tokens, const CallRecord& record,
                           grpc::CallbackServerContext* context, v1::UploadTokensResponse* response)
    : runtime_(runtime), tokens_(tokens), record_(record), context_(context), response_(response) {}

void UploadStream::Start() {
  const std::shared_ptr<UploadStream> self = shared_from_this();
  const bool open = runtime_->open_calls.Add(self);
  const absl::StatusOr<jobs::CallContext> call = ReadCallContext(context_->client_metadata());
  common::MutexLock lock(&mutex_);
  self_ = self;
  if (!open) {
    FinishOnce(ShuttingDownError());
  } else if (!call.ok()) {
    FinishOnce(call.status());
  } else if (!finished_) {
    upload_ = tokens_->StartUpload(call->tenant);
    StartRead(&piece_);
  }
}

void UploadStream::OnReadDone(bool ok) {
  common::MutexLock lock(&mutex_);
  if (finished_) return;
  working_ = true;
  // Without a piece, the client has sent all, or is gone: then OnCancel comes as well.
  if (runtime_->executor.TrySubmit([self = shared_from_this(), last = !ok] { self->Work(last); })) {
    return;
  }
  working_ = false;
  FinishOnce(BusyError());
}

void UploadStream::Work(bool last) {
  absl::Status status;
  if (context_->IsCancelled()) {
    status = AbandonedError();
  } else if (last) {
    absl::StatusOr<v1::UploadTokensResponse> response = upload_->Finish();
    status = response.status();
    if (response.ok()) *response_ = *std::move(response);
  } else if (piece_.data().size() > kMaxPieceBytes) {
    status =
        common::InvalidField("LIMIT_EXCEEDED", "data", absl::StrCat(piece_.data().size(), " bytes"),
                             absl::StrCat("at most ", kMaxPieceBytes, " bytes a piece"));
  } else {
    status = upload_->Append(piece_.data());
  }
  common::MutexLock lock(&mutex_);
  working_ = false;
  if (end_with_.has_value() && !(last && status.ok())) {
    FinishOnce(*end_with_);
  } else if (last || !status.ok()) {
    FinishOnce(status);
  } else {
    StartRead(&piece_);
  }
}

void UploadStream::End(const absl::Status& status) {
  common::MutexLock lock(&mutex_);
  if (working_) {
    if (!end_with_.has_value()) end_with_ = status;
  } else {
    FinishOnce(status);
  }
}

void UploadStream::OnCancel() { UploadStream::End(AbandonedError()); }

void UploadStream::FinishOnce(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  Finish(record_.End(status));
}

void UploadStream::OnDone() {
  std::shared_ptr<UploadStream> self;
  {
    common::MutexLock lock(&mutex_);
    self = std::move(self_);
  }
  runtime_->open_calls.Remove(this);
  if (upload_ == nullptr) return;
  // Deleting what was stored of it blocks on the store.
  const auto upload =
      std::make_shared<std::unique_ptr<jobs::UploadedTokens::Upload>>(std::move(upload_));
  if (!runtime_->executor.TrySubmit([upload] { upload->reset(); })) (*upload)->Leave();
}

}  // namespace hopscope::rpc
