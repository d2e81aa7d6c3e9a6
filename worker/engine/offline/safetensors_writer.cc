#include "worker/engine/offline/safetensors_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hopscope::engine {

int64_t SafetensorsWriter::Tensor::bytes() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements * element_bytes;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, const std::vector<Tensor>& tensors,
    const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const int64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  // Tensors begin at a multiple of 8 bytes, for readers that map the file.
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));

  HOPSCOPE_ASSIGN_OR_RETURN(common::OutputFile file, common::OutputFile::Create(path));
  HOPSCOPE_RETURN_IF_ERROR(file.Write(length));
  HOPSCOPE_RETURN_IF_ERROR(file.Write(text));
  return SafetensorsWriter(std::move(file), offset);
}

absl::Status SafetensorsWriter::Append(absl::string_view bytes) {
  missing_ -= static_cast<int64_t>(bytes.size());
  if (missing_ < 0) return absl::InternalError("more bytes than the tensors have");
  return file_.Write(bytes);
}

absl::Status SafetensorsWriter::Finish() {
  if (missing_ != 0) return absl::InternalError(absl::StrCat(missing_, " bytes are missing"));
  return file_.Commit();
}

}  // namespace hopscope::engine
