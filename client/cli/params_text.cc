#include "client/cli/params_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/spec_text.h"

namespace hopscope::cli {

std::string ParamsText(const google::protobuf::Struct& params) {
  std::vector<std::string> words;
  const nlohmann::ordered_json json = client::ParamsToJson(params);
  for (const auto& [key, value] : json.items()) {
    words.push_back(
        absl::StrCat(key, "=", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace hopscope::cli
