// A scorer's parameters for a terminal.
#ifndef HOPSCOPE_CLIENT_CLI_PARAMS_TEXT_H_
#define HOPSCOPE_CLIENT_CLI_PARAMS_TEXT_H_

#include <string>

#include "google/protobuf/struct.pb.h"

namespace hopscope::cli {

// "mode=tokens queries=last taus=0.0001", in the order of the names.
std::string ParamsText(const google::protobuf::Struct& params);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_PARAMS_TEXT_H_
