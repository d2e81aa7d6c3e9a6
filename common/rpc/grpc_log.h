// gRPC's own log, in the program's.
#ifndef HOPSCOPE_COMMON_RPC_GRPC_LOG_H_
#define HOPSCOPE_COMMON_RPC_GRPC_LOG_H_

namespace hopscope::common {

// Sends what gRPC logs to the program's log from now on, as one kind of record: what gRPC calls an
// error is often only a client that went away, so that it is a warning here. For main(), before the
// first call.
void RouteGrpcLog();

// While it lives, what gRPC logs on this thread is dropped.
class GrpcLogSilence {
 public:
  GrpcLogSilence();
  ~GrpcLogSilence();
  GrpcLogSilence(const GrpcLogSilence&) = delete;
  GrpcLogSilence& operator=(const GrpcLogSilence&) = delete;
};

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_RPC_GRPC_LOG_H_
