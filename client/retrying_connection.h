// A Connection over a stub: deadlines, retries with growing pauses, and watches that resume.
//
// A call is tried again where it is idempotent and its error says that the server may never have
// seen it or lost it: UNAVAILABLE, CANCELLED that nobody here asked for (a server that stops), and
// INTERNAL from a stream that the transport reset. An error that the server meant is returned at
// once.
#ifndef HOPSCOPE_CLIENT_RETRYING_CONNECTION_H_
#define HOPSCOPE_CLIENT_RETRYING_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/backoff.h"
#include "client/cancellation.h"
#include "client/connection.h"
#include "client/stub.h"
#include "common/clock.h"

namespace hopscope::client {

// What is said about a call that failed and is tried again.
struct RetryNotice {
  std::string method;
  absl::Status error;
  // Time until the next try.
  absl::Duration wait;
};

struct ConnectionOptions {
  // Longest time of one try of a call that answers from the server's memory or store.
  absl::Duration call_timeout = absl::Seconds(30);
  // The same for CreateEvalJob: the server may have to read large checkpoints for their digests.
  absl::Duration create_timeout = absl::Minutes(10);
  // The same for UploadTokens.
  absl::Duration upload_timeout = absl::Minutes(10);
  // A call that found no server is tried again for so long; 0: never.
  absl::Duration retry_for = absl::Seconds(10);
  // The same for a watch, from the last message it got: long enough for a server to be replaced.
  absl::Duration reconnect_for = absl::Minutes(5);
  BackoffOptions backoff;
  // Told before each pause, from the thread that makes the call; may be empty.
  std::function<void(const RetryNotice&)> on_retry;
  // Ends every call and watch with CANCELLED; may be null. Must outlive the connection.
  Cancellation* cancellation = nullptr;
  // For the times above. Must outlive the connection.
  const common::Clock* clock = common::Clock::Real();
  // Pauses between tries, no longer than until the cancellation. Empty: pauses, and does nothing
  // else.
  std::function<void(absl::Duration wait, Cancellation& cancellation)> pause;
  // For the jitter; 0: random.
  uint64_t seed = 0;
};

std::unique_ptr<Connection> MakeConnection(std::unique_ptr<EvaluationStub> stub,
                                           ConnectionOptions options);

// Whether the same idempotent call may well work a moment later.
bool IsTransient(const absl::Status& status);

// options.pause, or what goes for it.
void Pause(const ConnectionOptions& options, absl::Duration wait, Cancellation& cancellation);

// options.seed, or a random one.
uint64_t JitterSeed(const ConnectionOptions& options);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_RETRYING_CONNECTION_H_
