#include "common/spec/sequences.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

using common::InvalidField;

std::string WindowText(const v1::Window& window) {
  return absl::StrCat("target ", window.target(), " + pre_target ", window.pre_target());
}

}  // namespace

absl::Status CheckWindow(const v1::TaskCapability& task, const v1::Window& window,
                         absl::string_view field) {
  if (!task.has_default_window()) {
    return InvalidField(
        kUnsupported, field, WindowText(window),
        absl::StrCat("nothing: the sequences of task ", task.name(), " have no window"));
  }
  const auto check = [&](absl::string_view name, int32_t size, int32_t smallest, int32_t largest) {
    if (size >= smallest && size <= largest) return absl::OkStatus();
    return InvalidField(
        kOutOfRange, absl::StrCat(field, ".", name), absl::StrCat(size),
        absl::StrCat("task ", task.name(), " needs ",
                     smallest == largest ? absl::StrCat(smallest)
                                         : absl::StrCat(smallest, " to ", largest)));
  };
  HOPSCOPE_RETURN_IF_ERROR(
      check("target", window.target(), task.min_window().target(), task.max_window().target()));
  HOPSCOPE_RETURN_IF_ERROR(check("pre_target", window.pre_target(), task.min_window().pre_target(),
                                 task.max_window().pre_target()));
  if (window.target() + window.pre_target() > task.max_window_slots()) {
    return InvalidField(kUnsupported, field, WindowText(window),
                        absl::StrCat("task ", task.name(), " needs target + pre_target of at most ",
                                     task.max_window_slots()));
  }
  return absl::OkStatus();
}

absl::Status CheckHops(const v1::TaskCapability& task, const v1::Window& window, int32_t hops,
                       absl::string_view field) {
  if (hops < task.min_hops() || hops > task.max_hops()) {
    return InvalidField(kOutOfRange, field, absl::StrCat(hops),
                        absl::StrCat("task ", task.name(), " has hop counts ", task.min_hops(),
                                     " to ", task.max_hops()));
  }
  if (hops - 1 > window.pre_target()) {
    return InvalidField(kUnsupported, field, absl::StrCat(hops),
                        absl::StrCat("a window of ", WindowText(window), " has room for at most ",
                                     window.pre_target() + 1,
                                     " hops: all but the last end in different slots of its "
                                     "pre_target part"));
  }
  return absl::OkStatus();
}

absl::Status CheckPadding(const v1::TaskCapability& task, const v1::Window& window, int32_t hops,
                          absl::string_view padding, absl::string_view field) {
  if (std::find(task.paddings().begin(), task.paddings().end(), padding) == task.paddings().end()) {
    return InvalidField(
        kNameUnknown, field, Quoted(padding),
        absl::StrCat("task ", task.name(), " has ",
                     OneOf(padding, {task.paddings().begin(), task.paddings().end()})));
  }
  // All but the last hop's and the target's slots of the window are free.
  if (padding == "window" && window.target() + window.pre_target() <= hops) {
    return InvalidField(
        kUnsupported, field, Quoted(padding),
        absl::StrCat("with ", hops, " hops, every token of a window of ", WindowText(window),
                     " is on the hop path: none is left to repeat"));
  }
  return absl::OkStatus();
}

absl::Status CheckSequenceSpec(const v1::SequenceSpec& spec, absl::string_view field) {
  const auto path = [field](absl::string_view name) { return absl::StrCat(field, ".", name); };
  const v1::TaskCapability* task = FindTask(spec.task());
  if (task == nullptr) {
    std::vector<std::string> names;
    for (const v1::TaskCapability& one : Tasks()) names.push_back(one.name());
    return InvalidField(kNameUnknown, path("task"), Quoted(spec.task()), OneOf(spec.task(), names));
  }
  if (!spec.has_window()) {
    return InvalidField(kFieldMissing, path("window"), "nothing", "both sizes are needed");
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckWindow(*task, spec.window(), path("window")));
  HOPSCOPE_RETURN_IF_ERROR(CheckHops(*task, spec.window(), spec.hops(), path("hops")));
  if (spec.added_tokens() < 0) {
    return InvalidField(kOutOfRange, path("added_tokens"), absl::StrCat(spec.added_tokens()),
                        "at least 0");
  }
  HOPSCOPE_RETURN_IF_ERROR(
      CheckPadding(*task, spec.window(), spec.hops(), spec.padding(), path("padding")));
  if (spec.split() != v1::SPLIT_TRAIN && spec.split() != v1::SPLIT_VALIDATION &&
      spec.split() != v1::SPLIT_EVALUATION) {
    return InvalidField(kOutOfRange, path("split"), absl::StrCat(spec.split()),
                        "SPLIT_TRAIN, SPLIT_VALIDATION or SPLIT_EVALUATION");
  }
  return absl::OkStatus();
}

}  // namespace hopscope::spec
