// Reads the reference data of this folder (see README.md), for tests.
#ifndef HOPSCOPE_TESTS_GOLDEN_GOLDEN_DATA_H_
#define HOPSCOPE_TESTS_GOLDEN_GOLDEN_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/safetensors.h"
#include "nlohmann/json.hpp"
#include "worker/engine/model/model.h"

namespace hopscope::golden {

// Paths of tests/golden and of the shipped checkpoints.
std::string GoldenPath(const std::string& relative);
std::string CheckpointPath(const std::string& relative);

// "float32" or "float64", for the names of tests.
std::string DtypeName(v1::Dtype dtype);

nlohmann::json ReadJson(const std::string& path);

// A safetensors file of float64 and int64 tensors. Missing files and tensors end the test program.
class Tensors {
 public:
  explicit Tensors(const std::string& path);

  bool Has(const std::string& name) const;
  std::vector<int64_t> Shape(const std::string& name) const;
  std::vector<double> Doubles(const std::string& name) const;
  std::vector<int64_t> Integers(const std::string& name) const;

 private:
  const checkpoint::TensorEntry& Find(const std::string& name) const;
  const char* Bytes(const checkpoint::TensorEntry& entry) const;

  checkpoint::MappedFile file_;
  checkpoint::SafetensorsHeader header_;
};

// Loads a checkpoint folder; ends the test program where that fails. Matrix products then run on
// the calling thread alone.
std::shared_ptr<const engine::Model> LoadModel(const std::string& path, v1::Dtype dtype);

// Largest |a - b|; infinity where sizes differ or a number is NaN.
double MaxDifference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace hopscope::golden

#endif  // HOPSCOPE_TESTS_GOLDEN_GOLDEN_DATA_H_
