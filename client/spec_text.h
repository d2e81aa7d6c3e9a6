// Shows a job spec the way people write it: the YAML and JSON that ParseSpecYaml reads (JSON is
// YAML).
//
// Fields that hold nothing (empty lists and texts, zero, false, DTYPE_UNSPECIFIED) are left out,
// keys come in the order of the documentation, maps in the order of their keys: equal specs give
// equal text. Reading it back gives the same spec. Pure functions; thread-safe.
#ifndef HOPSCOPE_CLIENT_SPEC_TEXT_H_
#define HOPSCOPE_CLIENT_SPEC_TEXT_H_

#include <string>

#include "google/protobuf/struct.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "nlohmann/json.hpp"

namespace hopscope::client {

nlohmann::ordered_json SpecToJson(const v1::EvalJobSpec& spec);
std::string SpecToYaml(const v1::EvalJobSpec& spec);

// Parameters of a scorer, keys in alphabetical order; whole numbers without a fraction.
nlohmann::ordered_json ParamsToJson(const google::protobuf::Struct& params);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_SPEC_TEXT_H_
