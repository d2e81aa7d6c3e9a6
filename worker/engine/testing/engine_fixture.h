// For tests of the engine: units, engines, and copies of the shipped checkpoints to spoil.
#ifndef HOPSCOPE_WORKER_ENGINE_TESTING_ENGINE_FIXTURE_H_
#define HOPSCOPE_WORKER_ENGINE_TESTING_ENGINE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/model_root.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/torch_engine.h"

namespace hopscope::engine::testing {

// The repository's folder of checkpoints: number/step-06750 and letter/step-06750.
std::string ShippedCheckpoints();

// Ends the test program where the folder does not open.
std::unique_ptr<checkpoint::ModelRoot> OpenRoot(const std::string& path);

// An engine on the CPU.
std::unique_ptr<TorchEngine> MakeEngine(const checkpoint::ModelRoot* root, int threads,
                                        int64_t cache_bytes = 0);

// A float32 unit of TASK/step-06750 under `root` from item 0 on, with accuracy and with
// positional_symbolic at temperatures 1e-4 and 0.05.
v1::WorkUnit MakeUnit(const checkpoint::ModelRoot& root, const std::string& task, int hops,
                      int added_tokens, int64_t items);

// A model root in a temporary folder with copies of the shipped checkpoints.
class CopiedRoot {
 public:
  CopiedRoot();

  const checkpoint::ModelRoot& root() const { return *root_; }
  const checkpoint::testing::TempFolder& folder() const { return folder_; }

  // Fills the row of a token in the embedding of a checkpoint.
  void SetEmbedding(const std::string& checkpoint, int32_t token, float value);

  // Sets the first number of a weight.
  void SetWeight(const std::string& checkpoint, checkpoint::WeightRole role, int64_t layer,
                 float value);

 private:
  // Writes numbers over those of a stored float32 weight, from number `first` on.
  void Overwrite(const std::string& checkpoint, checkpoint::WeightRole role, int64_t layer,
                 int64_t first, const std::vector<float>& values);

  const checkpoint::testing::TempFolder folder_;
  std::unique_ptr<checkpoint::ModelRoot> root_;
};

}  // namespace hopscope::engine::testing

#endif  // HOPSCOPE_WORKER_ENGINE_TESTING_ENGINE_FIXTURE_H_
