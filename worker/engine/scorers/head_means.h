// Means of all heads' outputs over sequences: what the ablation "mean" puts in a head's place.
//
// A scorer without metrics of its own: Evaluate runs it over the sequences, which all have one
// length. Sequences whose outputs are not all finite are left out; where none is left, the means
// are NaN. Sums are float64 and taken in the order of the items, so that the means do not depend on
// threads.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_HEAD_MEANS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_HEAD_MEANS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/mutex.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class HeadMeansCollector : public Scorer {
 public:
  HeadMeansCollector(const checkpoint::Architecture& architecture, int64_t tokens);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

  // Once every item has gone through.
  HeadMeans Finish();

  // Sums of the finite sequences of a batch, [layers, tokens, heads * d_head].
  struct Part {
    int64_t items = 0;  // of the batch
    int64_t finite = 0;
    std::vector<double> sums;
  };
  // Parts may come in any order; those that are ahead wait.
  void Add(int64_t first_item, Part part);

 private:
  const int64_t layers_;
  const int64_t tokens_;
  const int64_t columns_;
  common::Mutex mutex_;
  HeadMeans means_ ABSL_GUARDED_BY(mutex_);
  int64_t next_item_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t finite_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Part> waiting_ ABSL_GUARDED_BY(mutex_);  // by first item
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_HEAD_MEANS_H_
