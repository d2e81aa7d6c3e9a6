#include "common/checkpoint/testing/write_checkpoint.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint::testing {
namespace {

void Expect(bool done, absl::string_view what) {
  if (done) return;
  std::cerr << "test set-up failed: " << what << std::endl;
  std::abort();
}

}  // namespace

TempFolder::TempFolder() {
  std::string name =
      (std::filesystem::temp_directory_path() / "hopscope-checkpoint-XXXXXX").string();
  Expect(mkdtemp(name.data()) != nullptr, "mkdtemp");
  path_ = std::filesystem::canonical(name).string();
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TempFolder::Path(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

void TempFolder::Write(absl::string_view name, absl::string_view content) const {
  const std::string path = Path(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  Expect(file.good(), path);
}

void TempFolder::MakeFolder(absl::string_view name) const {
  std::filesystem::create_directories(Path(name));
}

void TempFolder::Link(absl::string_view target, absl::string_view name) const {
  const std::string path = Path(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  Expect(symlink(std::string(target).c_str(), path.c_str()) == 0, path);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  Expect(file.good(), path);
  return content.str();
}

std::string Float32Bytes(const std::vector<float>& values) {
  std::string bytes(4 * values.size(), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &values[i], sizeof(word));
    for (size_t k = 0; k < 4; ++k) bytes[4 * i + k] = static_cast<char>(word >> (8 * k));
  }
  return bytes;
}

std::string SafetensorsFile(absl::string_view header, absl::string_view data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return absl::StrCat(length, header, data);
}

std::string SafetensorsFile(const std::vector<Tensor>& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const Tensor& tensor : tensors) {
    entries.push_back(absl::StrCat(nlohmann::json(tensor.name).dump(), ":{\"dtype\":\"",
                                   tensor.dtype, "\",\"shape\":[", absl::StrJoin(tensor.shape, ","),
                                   "],\"data_offsets\":[", data.size(), ",",
                                   data.size() + tensor.bytes.size(), "]}"));
    data += tensor.bytes;
  }
  return SafetensorsFile(absl::StrCat("{", absl::StrJoin(entries, ","), "}"), data);
}

std::string ConfigOf(const GptJ& model) {
  const nlohmann::json config = {{"model_type", "gptj"},
                                 {"n_layer", model.layers},
                                 {"n_head", model.heads},
                                 {"n_embd", model.d_model},
                                 {"n_inner", model.d_mlp},
                                 {"rotary_dim", model.rotary_dim},
                                 {"n_positions", model.n_positions},
                                 {"vocab_size", model.vocab_size},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", 1e-5},
                                 {"tie_word_embeddings", false}};
  return config.dump(2);
}

std::vector<Tensor> TensorsOf(const GptJ& model) {
  std::mt19937 random(model.seed);
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, std::vector<int64_t> shape) {
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    std::vector<float> values(static_cast<size_t>(elements));
    // Not std::normal_distribution, whose values differ between libraries.
    for (float& value : values) {
      value = (static_cast<float>(random() >> 8) / static_cast<float>(1 << 24) - 0.5F) * 0.2F;
    }
    tensors.push_back({std::move(name), "F32", std::move(shape), Float32Bytes(values)});
  };
  const int64_t d = model.d_model;
  add("transformer.wte.weight", {model.vocab_size, d});
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = absl::StrCat("transformer.h.", layer, ".");
    add(prefix + "ln_1.weight", {d});
    add(prefix + "ln_1.bias", {d});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      add(absl::StrCat(prefix, "attn.", name, ".weight"), {d, d});
    }
    add(prefix + "mlp.fc_in.weight", {model.d_mlp, d});
    add(prefix + "mlp.fc_in.bias", {model.d_mlp});
    add(prefix + "mlp.fc_out.weight", {d, model.d_mlp});
    add(prefix + "mlp.fc_out.bias", {d});
  }
  add("transformer.ln_f.weight", {d});
  add("transformer.ln_f.bias", {d});
  add("lm_head.weight", {model.vocab_size, d});
  add("lm_head.bias", {model.vocab_size});
  return tensors;
}

void WriteCheckpoint(const TempFolder& folder, absl::string_view name, const GptJ& model) {
  folder.Write(absl::StrCat(name, "/config.json"), ConfigOf(model));
  folder.Write(absl::StrCat(name, "/model.safetensors"), SafetensorsFile(TensorsOf(model)));
}

}  // namespace hopscope::checkpoint::testing
