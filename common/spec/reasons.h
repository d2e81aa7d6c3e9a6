// Reasons in the ErrorInfo of a spec that is refused; the field that they are about is in its
// metadata.
#ifndef HOPSCOPE_COMMON_SPEC_REASONS_H_
#define HOPSCOPE_COMMON_SPEC_REASONS_H_

#include "absl/strings/string_view.h"

namespace hopscope::spec {

inline constexpr absl::string_view kFieldMissing = "FIELD_MISSING";
inline constexpr absl::string_view kNameUnknown = "NAME_UNKNOWN";
inline constexpr absl::string_view kOutOfRange = "VALUE_OUT_OF_RANGE";
inline constexpr absl::string_view kDuplicate = "VALUE_DUPLICATE";
inline constexpr absl::string_view kWrongType = "TYPE_MISMATCH";
inline constexpr absl::string_view kInvalidText = "TEXT_INVALID";
inline constexpr absl::string_view kLimitExceeded = "LIMIT_EXCEEDED";
// The task cannot make sequences of that shape, or the field is not for that task.
inline constexpr absl::string_view kUnsupported = "COMBINATION_UNSUPPORTED";

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_REASONS_H_
