// Sends the tokens files that a spec file names to the server.
#ifndef HOPSCOPE_CLIENT_TOKENS_UPLOAD_H_
#define HOPSCOPE_CLIENT_TOKENS_UPLOAD_H_

#include "absl/status/status.h"
#include "client/client.h"
#include "client/spec_yaml.h"

namespace hopscope::client {

// Reads and checks each file, uploads it, and puts its digest into the task that names it. Paths
// are relative to the spec's own folder. Errors in a file (TOKENS_FILE_INVALID, or FILE_NOT_FOUND
// and FILE_UNREADABLE) say FILE:LINE or FILE, and where the spec names it; others are the
// client's. Memory does not grow with the files.
absl::Status UploadTokensFiles(const Client& client, ParsedSpec& parsed);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_TOKENS_UPLOAD_H_
