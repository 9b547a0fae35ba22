// A folder in the form of tests/data/fish/set_a whose goldens come from the plain reference.
#pragma once

#include <string>

#include "base/temporary_folder_testing.h"
#include "models/dual_ar/config.h"
#include "models/dual_ar/random_model_testing.h"
#include "models/dual_ar/tensor_file_testing.h"

namespace shoal::dual_ar::testing {

class FixtureFolder {
 public:
  // An S1 model of random weights whose fast transformer is `fast_dim` wide, its slow one 96. One case,
  // "plain", and a long prompt.
  FixtureFolder(int64_t fast_dim, unsigned seed);

  // By name with the prefix "lm."; a test writes its changes here.
  TensorFile& goldens() { return goldens_; }
  const Config& config() const { return config_; }
  void write(const TemporaryFolder& folder) const;

 private:
  void add_case();
  void add_long_prompt();
  void add_stream(float penalty, std::span<const int32_t> prompt);

  std::string config_json_;
  Config config_;
  std::mt19937 random_;
  NamedWeights weights_;
  TensorFile goldens_;
};

}  // namespace shoal::dual_ar::testing
