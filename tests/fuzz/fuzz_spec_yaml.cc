// Reads arbitrary text as a job spec: it gives a spec or an error with a place, never a crash, and
// a spec that is shown as YAML or JSON reads back as the same spec.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "client/spec_text.h"
#include "client/spec_yaml.h"
#include "common/status.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/fuzz/require.h"

namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::hopscope::client::ParseSpecYaml;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = ParseSpecYaml(text, "fuzz.yaml");
  if (!parsed.ok()) {
    HOPSCOPE_REQUIRE(parsed.status().code() == absl::StatusCode::kInvalidArgument);
    const auto info = hopscope::common::GetErrorInfo(parsed.status());
    HOPSCOPE_REQUIRE(info.has_value() && info->metadata().contains("line"));
    return 0;
  }
  for (const std::string& shown : {hopscope::client::SpecToYaml(parsed->spec),
                                   hopscope::client::SpecToJson(parsed->spec).dump()}) {
    const auto again = ParseSpecYaml(shown, "shown.yaml");
    if (!again.ok()) {
      // One value for a list of one, and aliases, are shorter in the original.
      const std::string reason = hopscope::common::ErrorReason(again.status());
      HOPSCOPE_REQUIRE(reason == "YAML_TOO_DEEP" || reason == "YAML_TOO_LARGE" ||
                       reason == "FILE_TOO_LARGE");
      continue;
    }
    HOPSCOPE_REQUIRE(MessageDifferencer::Equals(again->spec, parsed->spec));
  }
  return 0;
}
