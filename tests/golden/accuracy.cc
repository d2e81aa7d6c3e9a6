#include "tests/golden/accuracy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hopscope::golden {

std::vector<ReferenceAccuracy> ShortReferences() {
  std::vector<ReferenceAccuracy> references;
  const auto add = [&](const std::string& checkpoint, const std::vector<double>& accuracies) {
    for (int hops = 0; hops <= 4; ++hops) {
      references.push_back({.checkpoint = checkpoint,
                            .hops = hops,
                            .accuracy = accuracies[hops],
                            .sequences = hops == 0 ? 1200 : 300});
    }
  };
  add("number/step-02500", {.832, 1.000, .983, .653, .690});
  add("number/step-06750", {1, 1, 1, 1, 1});
  add("letter/step-02000", {.878, .940, .930, .833, .810});
  add("letter/step-06750", {1, 1, 1, 1, 1});
  return references;
}

std::vector<ReferenceAccuracy> LongReferences() {
  std::vector<ReferenceAccuracy> references;
  const auto add = [&](const std::string& checkpoint, int added_tokens, int hops, double accuracy) {
    references.push_back({.checkpoint = checkpoint,
                          .added_tokens = added_tokens,
                          .hops = hops,
                          .accuracy = accuracy,
                          .sequences = hops == 0 ? 200 : 50});
  };
  const std::string number = "number/step-06750";
  const std::string letter = "letter/step-06750";
  const int lengths[] = {20, 50, 100, 300, 500, 850};
  const double number_all[] = {1, .755, .58, .315, .21, .095};
  const double letter_all[] = {1, 1, .985, .83, .70, .555};
  for (int i = 0; i < 6; ++i) {
    add(number, lengths[i], 0, number_all[i]);
    add(letter, lengths[i], 0, letter_all[i]);
    add(letter, lengths[i], 1, 1);
  }
  add(number, 300, 1, .98);
  add(number, 500, 1, .76);
  add(number, 850, 1, .34);
  add(letter, 300, 4, .66);
  add(letter, 500, 4, .28);
  add(letter, 850, 4, .18);
  return references;
}

std::vector<ReferenceAccuracy> PaddingReferences() {
  std::vector<ReferenceAccuracy> references;
  for (const auto& [padding, accuracy] :
       {std::pair{"random", .83}, {"pairs", .69}, {"constant", 0.}}) {
    references.push_back({.checkpoint = "letter/step-06750",
                          .added_tokens = 300,
                          .accuracy = accuracy,
                          .sequences = 200,
                          .padding = padding});
  }
  return references;
}

AccuracyMeter::AccuracyMeter(const std::string& root) {
  auto opened = checkpoint::ModelRoot::Open(root);
  EXPECT_TRUE(opened.ok()) << opened.status();
  root_ = *std::move(opened);
  auto engine = engine::TorchEngine::Create({.model_root = root_.get(), .device = "cpu"});
  EXPECT_TRUE(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
}

double AccuracyMeter::Measure(const ReferenceAccuracy& reference, int per_hop) {
  const int first = reference.hops == 0 ? 1 : reference.hops;
  const int last = reference.hops == 0 ? 4 : reference.hops;
  int64_t correct = 0;
  for (int hops = first; hops <= last; ++hops) {
    const std::string key = absl::StrCat(reference.checkpoint, " +", reference.added_tokens, " ",
                                         hops, " hops, ", per_hop, " ", reference.padding);
    const auto known = std::find_if(measured_.begin(), measured_.end(),
                                    [&](const auto& one) { return one.first == key; });
    if (known != measured_.end()) {
      correct += known->second;
      continue;
    }
    v1::WorkUnit unit;
    unit.set_item_count(per_hop);
    v1::SequenceSpec* sequences = unit.mutable_sequences();
    sequences->set_task(reference.checkpoint.substr(0, reference.checkpoint.find('/')));
    sequences->set_hops(hops);
    sequences->set_added_tokens(reference.added_tokens);
    sequences->mutable_window()->set_target(8);
    sequences->mutable_window()->set_pre_target(8);
    sequences->set_padding(reference.padding);
    sequences->set_seed(42);
    sequences->set_split(v1::SPLIT_EVALUATION);
    unit.mutable_checkpoint()->set_name(reference.checkpoint);
    const auto digest = root_->Digest(reference.checkpoint);
    EXPECT_TRUE(digest.ok()) << digest.status();
    unit.mutable_checkpoint()->set_digest(*digest);
    const auto result = engine_->Run(unit, engine::CancelFlag(), nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->items(), per_hop);
    measured_.emplace_back(key, result->correct());
    correct += result->correct();
  }
  return static_cast<double>(correct) / static_cast<double>(per_hop * (last - first + 1));
}

double AccuracyMeter::Distance(const ReferenceAccuracy& reference, int per_hop) {
  const double measured = Measure(reference, per_hop);
  const double sequences = reference.hops == 0 ? 4.0 * per_hop : per_hop;
  const double variance = measured * (1 - measured) / sequences +
                          reference.accuracy * (1 - reference.accuracy) / reference.sequences;
  const double difference = std::abs(measured - reference.accuracy);
  const double distance = difference == 0 ? 0
                          : variance > 0  ? difference / std::sqrt(variance)
                                          : std::numeric_limits<double>::infinity();
  std::printf("%-18s +%-3d %-8s %s: %.3f, reference %.3f, %.1f standard errors apart\n",
              reference.checkpoint.c_str(), reference.added_tokens, reference.padding.c_str(),
              reference.hops == 0 ? "all hops" : absl::StrCat(reference.hops, "-hop   ").c_str(),
              measured, reference.accuracy, distance);
  return distance;
}

}  // namespace hopscope::golden
