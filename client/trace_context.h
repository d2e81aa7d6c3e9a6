// Trace identity that travels with calls, as W3C Trace Context
// (https://www.w3.org/TR/trace-context/) has it.
#ifndef HOPSCOPE_CLIENT_TRACE_CONTEXT_H_
#define HOPSCOPE_CLIENT_TRACE_CONTEXT_H_

#include <string>

namespace hopscope::client {

// One trace: everything that one command does. Thread-safe.
class TraceContext {
 public:
  // With a random trace id.
  TraceContext();

  // 32 hex digits, not all 0.
  const std::string& trace_id() const { return trace_id_; }

  // The value of a `traceparent` header, with a span id of its own each time.
  std::string NewTraceparent() const;

 private:
  std::string trace_id_;
};

// A random (version 4) UUID, such as 3f2b8c1e-....
std::string RandomUuid();

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_TRACE_CONTEXT_H_
