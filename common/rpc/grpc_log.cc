#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "common/logging.h"

namespace hopscope::common {
namespace {

thread_local int silences = 0;

void Write(gpr_log_func_args* record) {
  if (silences > 0) return;
  Log(record->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug,
      "gRPC",
      {{"text", record->message}, {"source", absl::StrCat(record->file, ":", record->line)}});
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(&Write); }

GrpcLogSilence::GrpcLogSilence() { ++silences; }
GrpcLogSilence::~GrpcLogSilence() { --silences; }

}  // namespace hopscope::common
