// Reads the events of a job over as many streams as it takes: each durable event once and in order.
#ifndef HOPSCOPE_CLIENT_RESUMING_EVENT_READER_H_
#define HOPSCOPE_CLIENT_RESUMING_EVENT_READER_H_

#include <memory>

#include "client/connection.h"
#include "client/retrying_connection.h"
#include "client/stub.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

// Opens a stream, and after a transient error (IsTransient), a missing event, or an end with OK
// that came before the job's, another one after the last sequence that was given. `stub` must
// outlive the reader.
std::unique_ptr<EventReader> MakeResumingEventReader(EvaluationStub* stub,
                                                     const v1::WatchEvalJobRequest& request,
                                                     const ConnectionOptions& options);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_RESUMING_EVENT_READER_H_
