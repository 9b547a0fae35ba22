// The codec by the formulas (MODEL.md), in double, whole clips at once, one loop per sum: the oracle of the
// tests. It shares only the source of the weights with the codec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/dac/config.h"
#include "models/dac/loader.h"

namespace shoal::dac {

// [channels, rows] of a whole clip.
struct OracleMap {
  int64_t channels = 0, rows = 0;
  std::vector<double> values;
  OracleMap(int64_t c, int64_t t) : channels(c), rows(t), values(static_cast<size_t>(c * t)) {}
  double& at(int64_t c, int64_t t) { return values[static_cast<size_t>(c * rows + t)]; }
  double at(int64_t c, int64_t t) const { return values[static_cast<size_t>(c * rows + t)]; }
};

class CodecOracle {
 public:
  CodecOracle(weights::TensorSource& source, const Config& config) : source_(source), config_(config) {}

  // codes: [frames, num_codebooks] -> samples
  std::vector<double> decode(const std::vector<int32_t>& codes) const;

  struct Codes {
    std::vector<int32_t> codes;  // [frames, num_codebooks]
    std::vector<double> margin;  // second best less best squared distance of each
  };
  Codes encode(const std::vector<float>& samples) const;

 private:
  std::vector<double> weight(const std::string& name, const Shape& shape) const;
  std::vector<double> kernel(const std::string& prefix, const Shape& shape) const;
  OracleMap conv(const OracleMap& x, const std::string& prefix, int64_t out, int64_t k, int64_t stride,
                 int64_t dilation) const;
  OracleMap transposed(const OracleMap& x, const std::string& prefix, int64_t out, int64_t k,
                       int64_t stride) const;
  OracleMap snake(OracleMap x, const std::string& name) const;
  OracleMap residual_unit(const OracleMap& x, const std::string& prefix, int64_t dilation) const;
  OracleMap conv_next(const OracleMap& x, const std::string& prefix) const;
  // weight [out, in] over columns.
  OracleMap linear(const OracleMap& x, const std::string& prefix, int64_t out, bool bias) const;
  OracleMap rms_norm(OracleMap x, const std::string& name) const;
  struct Heads {
    int64_t layers, width, count, dim, hidden, window;  // width: of the rows inside
  };
  OracleMap transformer(OracleMap x, const std::string& prefix, const Heads& heads) const;
  OracleMap attention(const OracleMap& x, const std::string& prefix, const Heads& heads) const;
  void add_scaled(OracleMap& x, const OracleMap& y, const std::string& gamma) const;

  weights::TensorSource& source_;
  Config config_;
};

}  // namespace shoal::dac
