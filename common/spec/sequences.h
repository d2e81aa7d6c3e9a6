// Which sequences a task can make: the rules that specs and the engine's tasks share.
//
// Errors are INVALID_ARGUMENT (common::InvalidField) with the reasons of validate.h. Pure
// functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_SEQUENCES_H_
#define HOPSCOPE_COMMON_SPEC_SEQUENCES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hopscope/v1/dispatch.pb.h"

namespace hopscope::spec {

// Sizes that the task's vocabulary can express. `field` is the window's path, such as
// spec.tasks[0].window.
absl::Status CheckWindow(const v1::TaskCapability& task, const v1::Window& window,
                         absl::string_view field);

// A hop count that the task has and the window has slots for.
absl::Status CheckHops(const v1::TaskCapability& task, const v1::Window& window, int32_t hops,
                       absl::string_view field);

// A padding that the task has and, where the spec adds tokens, the window has free tokens for at
// `hops`.
absl::Status CheckPadding(const v1::TaskCapability& task, const v1::Window& window, int32_t hops,
                          absl::string_view padding, absl::string_view field);

// All of that, and the remaining fields. Nothing has a default here: what a sequence depends on is
// written out.
absl::Status CheckSequenceSpec(const v1::SequenceSpec& spec, absl::string_view field);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_SEQUENCES_H_
