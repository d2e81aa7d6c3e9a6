// A stub that adds to each call who makes it and what it belongs to.
#ifndef HOPSCOPE_CLIENT_METADATA_STUB_H_
#define HOPSCOPE_CLIENT_METADATA_STUB_H_

#include <memory>
#include <string>

#include "client/stub.h"
#include "client/trace_context.h"

namespace hopscope::client {

struct CallMetadata {
  // Goes into "hopscope-tenant"; empty: not sent.
  std::string tenant;
  // Goes into "traceparent", with a span of its own for each call.
  TraceContext trace;
};

std::unique_ptr<EvaluationStub> MakeMetadataStub(std::unique_ptr<EvaluationStub> stub,
                                                 CallMetadata metadata);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_METADATA_STUB_H_
