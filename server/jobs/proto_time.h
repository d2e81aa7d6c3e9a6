// Times as the store keeps them, in microseconds, and as protos carry them.
#ifndef HOPSCOPE_SERVER_JOBS_PROTO_TIME_H_
#define HOPSCOPE_SERVER_JOBS_PROTO_TIME_H_

#include "absl/time/time.h"
#include "common/clock.h"
#include "google/protobuf/timestamp.pb.h"

namespace hopscope::jobs {

// The clock's time, rounded down to the store's resolution.
inline absl::Time StoreNow(const common::Clock& clock) {
  return absl::FromUnixMicros(absl::ToUnixMicros(clock.Now()));
}

inline google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(absl::ToUnixSeconds(time));
  timestamp.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(timestamp.seconds()))));
  return timestamp;
}

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PROTO_TIME_H_
