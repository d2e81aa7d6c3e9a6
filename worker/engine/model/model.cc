#include "worker/engine/model/model.h"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/model/weights.h"

namespace hopscope::engine {

Model::Model(const checkpoint::Architecture& architecture, v1::Dtype dtype, Device device)
    : architecture_(architecture),
      dtype_(dtype),
      device_(device),
      float32_tables_(&architecture_),
      float64_tables_(&architecture_) {}

Model::~Model() = default;

absl::StatusOr<std::shared_ptr<const Model>> Model::Load(const checkpoint::Checkpoint& checkpoint,
                                                         v1::Dtype dtype, Device device) {
  if (!v1::Dtype_IsValid(dtype) || dtype == v1::DTYPE_UNSPECIFIED) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "INTERNAL",
        absl::StrCat("the engine does not compute in ", v1::Dtype_Name(dtype)));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckRunnable(checkpoint.architecture()));
  std::shared_ptr<Model> model(new Model(checkpoint.architecture(), dtype, device));
  HOPSCOPE_RETURN_IF_ERROR(CatchTorch([&] {
    const c10::InferenceMode no_gradients;
    model->weights_ = std::make_unique<const ModelWeights>(LoadWeights(checkpoint, dtype, device));
    model->weight_bytes_ = BytesOf(*model->weights_);
    return absl::OkStatus();
  }));
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace hopscope::engine
