// Whether a worker can compute a job's units. What a unit needs falls into three parts that do not
// depend on each other: the job's (dtype, pinned kind), its task entry's (task, scorers), and its
// checkpoint's (family, size).
//
// Pure functions; thread-safe. Each returns an empty text where the worker fits, else why it does
// not, for people.
#ifndef HOPSCOPE_SERVER_JOBS_CAPABILITY_H_
#define HOPSCOPE_SERVER_JOBS_CAPABILITY_H_

#include <string>

#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/store/rows.h"

namespace hopscope::jobs {

std::string WhyJobDoesNotFit(const v1::WorkerDescription& worker, const store::JobRow& job,
                             const v1::EvalJobSpec& spec);
std::string WhyTaskDoesNotFit(const v1::WorkerDescription& worker, const v1::TaskSpec& task);
std::string WhyCheckpointDoesNotFit(const v1::WorkerDescription& worker,
                                    const store::CheckpointRow& checkpoint);

// All three, for the cell's unit.
std::string WhyCellDoesNotFit(const v1::WorkerDescription& worker, const store::JobRow& job,
                              const store::JobPlanRow& plan, const store::CellRow& cell);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_CAPABILITY_H_
