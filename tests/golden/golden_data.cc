#include "tests/golden/golden_data.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/engine/model/torch_runtime.h"

namespace hopscope::golden {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

template <typename T>
std::vector<T> Copy(const char* bytes, size_t size) {
  std::vector<T> values(size / sizeof(T));
  std::memcpy(values.data(), bytes, values.size() * sizeof(T));
  return values;
}

}  // namespace

std::string GoldenPath(const std::string& relative) {
  return std::string(HOPSCOPE_SOURCE_DIR "/tests/golden/") + relative;
}

std::string CheckpointPath(const std::string& relative) {
  return std::string(HOPSCOPE_SOURCE_DIR "/checkpoints/") + relative;
}

std::string DtypeName(v1::Dtype dtype) {
  return dtype == v1::DTYPE_FLOAT64 ? "float64" : "float32";
}

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    std::abort();
  }
  return nlohmann::json::parse(file);
}

Tensors::Tensors(const std::string& path)
    : file_(ValueOrDie(checkpoint::MappedFile::Open(path, path))),
      header_(ValueOrDie(checkpoint::ParseSafetensorsHeader(file_.bytes(), file_.bytes().size()))) {
}

bool Tensors::Has(const std::string& name) const {
  for (const checkpoint::TensorEntry& entry : header_.tensors) {
    if (entry.name == name) return true;
  }
  return false;
}

const checkpoint::TensorEntry& Tensors::Find(const std::string& name) const {
  for (const checkpoint::TensorEntry& entry : header_.tensors) {
    if (entry.name == name) return entry;
  }
  std::fprintf(stderr, "no tensor %s\n", name.c_str());
  std::abort();
}

const char* Tensors::Bytes(const checkpoint::TensorEntry& entry) const {
  return file_.bytes().data() + header_.data_start + entry.begin;
}

std::vector<int64_t> Tensors::Shape(const std::string& name) const { return Find(name).shape; }

std::vector<double> Tensors::Doubles(const std::string& name) const {
  const checkpoint::TensorEntry& entry = Find(name);
  return Copy<double>(Bytes(entry), entry.end - entry.begin);
}

std::vector<int64_t> Tensors::Integers(const std::string& name) const {
  const checkpoint::TensorEntry& entry = Find(name);
  return Copy<int64_t>(Bytes(entry), entry.end - entry.begin);
}

std::shared_ptr<const engine::Model> LoadModel(const std::string& path, v1::Dtype dtype) {
  engine::UseOneTorchThread();
  const checkpoint::Checkpoint checkpoint = ValueOrDie(checkpoint::Checkpoint::Open(path));
  return ValueOrDie(engine::Model::Load(checkpoint, dtype));
}

double MaxDifference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;
    if (std::isnan(largest)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

}  // namespace hopscope::golden
