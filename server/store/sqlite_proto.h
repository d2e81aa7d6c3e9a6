// Protos in BLOB columns.
#ifndef HOPSCOPE_SERVER_STORE_SQLITE_PROTO_H_
#define HOPSCOPE_SERVER_STORE_SQLITE_PROTO_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace hopscope::store {

// Parses a column; sets `damaged` where it holds something else.
template <typename Proto>
void ParseProto(absl::string_view bytes, Proto& proto, bool& damaged) {
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) damaged = true;
}

inline absl::Status DamagedProto(absl::string_view column) {
  return common::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                           absl::StrCat("the store's file is damaged: unreadable ", column));
}

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_SQLITE_PROTO_H_
