// For tests: temporary folders, safetensors files of any content, and complete small checkpoints.
//
// Every function aborts where the disk does not do what it should: there is nothing to test then.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_TESTING_WRITE_CHECKPOINT_H_
#define HOPSCOPE_COMMON_CHECKPOINT_TESTING_WRITE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hopscope::checkpoint::testing {

// A new folder that is deleted with all its content at the end.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }
  std::string Path(absl::string_view name) const;
  // Writes a file, and makes the folders that its name asks for.
  void Write(absl::string_view name, absl::string_view content) const;
  void MakeFolder(absl::string_view name) const;
  // A symbolic link called `name`.
  void Link(absl::string_view target, absl::string_view name) const;

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

struct Tensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<int64_t> shape;
  std::string bytes;
};

// `values` as little-endian float32.
std::string Float32Bytes(const std::vector<float>& values);

// A file with that header, whatever it says, and that data.
std::string SafetensorsFile(absl::string_view header, absl::string_view data);
// A valid file with these tensors, in this order.
std::string SafetensorsFile(const std::vector<Tensor>& tensors);

// A GPT-J model with sizes of one's choice; weights are small and depend on `seed` alone.
struct GptJ {
  int64_t layers = 2;
  int64_t heads = 2;
  int64_t d_model = 16;
  int64_t d_mlp = 32;
  int64_t rotary_dim = 4;
  int64_t n_positions = 64;
  int64_t vocab_size = 11;
  uint32_t seed = 1;
};
std::string ConfigOf(const GptJ& model);
std::vector<Tensor> TensorsOf(const GptJ& model);
// Writes NAME/config.json and NAME/model.safetensors.
void WriteCheckpoint(const TempFolder& folder, absl::string_view name, const GptJ& model);

}  // namespace hopscope::checkpoint::testing

#endif  // HOPSCOPE_COMMON_CHECKPOINT_TESTING_WRITE_CHECKPOINT_H_
