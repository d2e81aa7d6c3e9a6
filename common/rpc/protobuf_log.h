// Protobuf's own log, in the program's.
#ifndef HOPSCOPE_COMMON_RPC_PROTOBUF_LOG_H_
#define HOPSCOPE_COMMON_RPC_PROTOBUF_LOG_H_

namespace hopscope::common {

// Sends what protobuf logs (a string field that is no UTF-8, say) to the program's log from now on,
// as one kind of record. For main(), before there are other threads.
void RouteProtobufLog();

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_RPC_PROTOBUF_LOG_H_
