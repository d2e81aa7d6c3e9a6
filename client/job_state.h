// Names of a job's states, as people see and filter them.
#ifndef HOPSCOPE_CLIENT_JOB_STATE_H_
#define HOPSCOPE_CLIENT_JOB_STATE_H_

#include <string>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

// Whether a job in this state changes no more.
bool IsFinal(v1::EvalJob::State state);

// "RUNNING" for STATE_RUNNING; a number for a state of a newer server.
std::string StateName(v1::EvalJob::State state);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_JOB_STATE_H_
