// Random configurations and random checkpoints on disk, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "models/dual_ar/config.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shoal::dual_ar::testing {

struct NamedWeight {
  Shape shape;
  std::vector<float> values;  // bf16-exact
};
using NamedWeights = std::map<std::string, NamedWeight>;

// Odd sizes, any grouping of heads, norms, biases, tied heads, both families.
Config random_config(std::mt19937& random);

// Every tensor of MODEL.md 7 that the configuration asks for.
NamedWeights random_weights(const Config& config, std::mt19937& random);

// wqkv of every block becomes wq, wk, wv, as some training code stores them.
void split_qkv(const Config& config, NamedWeights& weights);

// Ids that a prompt of `columns` columns may have: text, and frames of codes.
std::vector<int32_t> random_columns(const Config& config, int64_t columns, std::mt19937& random);

// A safetensors file, F32 or BF16, removed at the end.
class CheckpointFile {
 public:
  CheckpointFile(const NamedWeights& weights, DType dtype);
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace shoal::dual_ar::testing
