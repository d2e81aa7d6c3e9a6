#include "worker/engine/testing/engine_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"

namespace hopscope::engine::testing {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

}  // namespace

std::string ShippedCheckpoints() { return HOPSCOPE_SOURCE_DIR "/checkpoints"; }

std::unique_ptr<checkpoint::ModelRoot> OpenRoot(const std::string& path) {
  return ValueOrDie(checkpoint::ModelRoot::Open(path));
}

std::unique_ptr<TorchEngine> MakeEngine(const checkpoint::ModelRoot* root, int threads,
                                        int64_t cache_bytes) {
  return ValueOrDie(TorchEngine::Create(
      {.model_root = root, .device = "cpu", .threads = threads, .cache_bytes = cache_bytes}));
}

v1::WorkUnit MakeUnit(const checkpoint::ModelRoot& root, const std::string& task, int hops,
                      int added_tokens, int64_t items) {
  v1::WorkUnit unit;
  unit.set_job("jobs/test");
  unit.set_item_count(items);
  v1::SequenceSpec* sequences = unit.mutable_sequences();
  sequences->set_task(task);
  sequences->set_hops(hops);
  sequences->set_added_tokens(added_tokens);
  sequences->mutable_window()->set_target(8);
  sequences->mutable_window()->set_pre_target(8);
  sequences->set_padding("random");
  sequences->set_seed(42);
  sequences->set_split(v1::SPLIT_EVALUATION);
  unit.mutable_checkpoint()->set_name(task + "/step-06750");
  unit.mutable_checkpoint()->set_digest(ValueOrDie(root.Digest(unit.checkpoint().name())));
  unit.set_dtype(v1::DTYPE_FLOAT32);
  unit.add_scorers()->set_name("accuracy");
  v1::ScorerSpec* scores = unit.add_scorers();
  scores->set_name("positional_symbolic");
  auto* taus = (*scores->mutable_params()->mutable_fields())["taus"].mutable_list_value();
  taus->add_values()->set_number_value(1e-4);
  taus->add_values()->set_number_value(0.05);
  return unit;
}

CopiedRoot::CopiedRoot() {
  std::filesystem::copy(ShippedCheckpoints(), folder_.path(),
                        std::filesystem::copy_options::recursive);
  root_ = OpenRoot(folder_.path());
}

void CopiedRoot::SetEmbedding(const std::string& checkpoint, int32_t token, float value) {
  const auto opened = ValueOrDie(checkpoint::Checkpoint::Open(folder_.Path(checkpoint)));
  const int64_t width = opened.architecture().d_model;
  Overwrite(checkpoint, checkpoint::WeightRole::kTokenEmbedding, -1, token * width,
            std::vector<float>(width, value));
}

void CopiedRoot::SetWeight(const std::string& checkpoint, checkpoint::WeightRole role,
                           int64_t layer, float value) {
  Overwrite(checkpoint, role, layer, 0, {value});
}

void CopiedRoot::Overwrite(const std::string& checkpoint, checkpoint::WeightRole role,
                           int64_t layer, int64_t first, const std::vector<float>& values) {
  const std::string path = folder_.Path(checkpoint + "/model.safetensors");
  const std::string bytes = checkpoint::testing::ReadFile(path);
  size_t offset = 0;
  {
    const auto opened = ValueOrDie(checkpoint::Checkpoint::Open(folder_.Path(checkpoint)));
    // Where the tensor lies in the file: its beginning occurs nowhere else.
    const absl::string_view tensor = opened.Weight(role, layer).tensor.bytes;
    offset = bytes.find(std::string(tensor.substr(0, 4096)));
  }
  if (offset == std::string::npos) std::abort();
  offset += first * sizeof(float);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
}

}  // namespace hopscope::engine::testing
