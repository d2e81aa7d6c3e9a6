// Scorer "ablation": accuracy and loss of the label when heads' outputs are replaced
// (model/head_replacement.h), and what that costs against the same sequence with every head as it
// is: accuracy_drop and loss_rise, differences within an item, so that their standard errors are
// those of the paired difference.
//
// A head of layer l changes nothing before l: each variation is a pass of its own from the residual
// stream that enters its first layer, run while the pass of the batch is there.
//
// A logit that is NaN or infinite, with or without a replacement, fails the item.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_ABLATION_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_ABLATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class Ablation : public Scorer {
 public:
  // What is replaced in one pass, and where its values belong.
  struct Variation {
    HeadReplacements replacements;
    int64_t first_layer = 0;
    size_t set = 0;    // of the result parameters
    int64_t cell = 0;  // of that set's tables
    std::string name;  // for messages
  };

  // `spec` has every parameter filled in (spec::NormalizeScorerParams). `failures` must outlive the
  // scorer. It fits the model (spec::CheckScorerFits).
  static std::unique_ptr<Ablation> Create(const v1::ScorerSpec& spec,
                                          const checkpoint::Architecture& architecture,
                                          int64_t items, ItemFailures* failures);

  bool NeedsHeadMeans() const override { return needs_means_; }
  void SetHeadMeans(std::shared_ptr<const HeadMeans> means) override;

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  Ablation(size_t sets, std::vector<Variation> variations, ItemFailures* failures);

  const size_t sets_;
  std::vector<Variation> variations_;
  ItemFailures* const failures_;
  bool needs_means_ = false;
  std::shared_ptr<const HeadMeans> means_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_ABLATION_H_
