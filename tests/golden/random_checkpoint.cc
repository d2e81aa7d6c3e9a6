#include "tests/golden/random_checkpoint.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/families/family.h"

namespace hopscope::golden {

std::string WriteRandomCheckpoint(const checkpoint::testing::TempFolder& folder,
                                  const std::string& name, const nlohmann::json& config,
                                  uint32_t seed,
                                  const std::function<double(checkpoint::WeightRole)>& scale) {
  const auto model = checkpoint::DescribeModel(config.dump());
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    std::abort();
  }
  std::mt19937 random(seed);
  std::vector<checkpoint::testing::Tensor> tensors;
  for (const checkpoint::TensorRule& rule : model->tensors) {
    if (rule.storage != checkpoint::Storage::kLinear) std::abort();
    const checkpoint::RoleShape shape = checkpoint::ShapeOf(rule.role, model->architecture);
    const int64_t layers = absl::StrContains(rule.name, "{i}") ? model->architecture.layers : 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      checkpoint::testing::Tensor tensor{
          .name = absl::StrReplaceAll(rule.name, {{"{i}", absl::StrCat(layer)}}),
          .dtype = "F64",
          .shape = {shape.rows}};
      if (shape.columns.has_value()) tensor.shape.push_back(*shape.columns);
      std::vector<double> values(shape.rows * shape.columns.value_or(1));
      for (double& value : values) {
        value = (static_cast<double>(random()) / 2147483648.0 - 1) * scale(rule.role);
      }
      tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(double));
      tensors.push_back(std::move(tensor));
    }
  }
  folder.Write(name + "/config.json", config.dump());
  folder.Write(name + "/model.safetensors", checkpoint::testing::SafetensorsFile(tensors));
  return folder.Path(name);
}

}  // namespace hopscope::golden
