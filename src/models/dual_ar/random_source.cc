#include "models/dual_ar/random_source.h"

#include <algorithm>
#include <cmath>

namespace shoal::dual_ar {
namespace {

// splitmix64: one multiply-xor chain for four bf16 values. Philox would be ten times as slow, and nobody
// draws conclusions from these numbers.
uint64_t hash(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t hash_name(uint64_t seed, const std::string& name) {
  for (char c : name) seed = hash(seed + 0x9e3779b97f4a7c15u + static_cast<unsigned char>(c));
  return seed;
}

}  // namespace

TensorView RandomSource::get(const std::string& name, const Shape& shape) {
  const bool matrix = shape.rank() == 2;
  // Random sign, mantissa, and one of four exponents: the root mean square is about 0.85 * 2^top.
  const int top = matrix ? static_cast<int>(std::lround(-0.5 * std::log2(shape[1]) + 0.2)) : -1;
  const uint16_t exponent = static_cast<uint16_t>((127 + top) << 7);
  const uint64_t key = hash_name(seed_, name);

  const Tensor& tensor = alive_.emplace_back(DType::bf16, shape);
  Bf16* values = tensor.as<Bf16>();
  team_.parallel_for((tensor.elements() + 3) / 4, int64_t{1} << 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t group = begin; group < end; ++group) {
      uint64_t bits = hash(key + static_cast<uint64_t>(group) * 0x9e3779b97f4a7c15u);
      const int64_t last = std::min(4 * group + 4, tensor.elements());
      for (int64_t i = 4 * group; i < last; ++i, bits >>= 16) {
        const auto mantissa = static_cast<uint16_t>(bits & 0x7f);
        const auto sign = static_cast<uint16_t>(bits & 0x8000);
        const auto lower = static_cast<uint16_t>(bits & 0x180);  // exponent lower by 0..3
        values[i] = static_cast<Bf16>(matrix ? sign | ((exponent - lower) + mantissa) : exponent | mantissa);
      }
    }
  });
  return tensor.view();
}

}  // namespace shoal::dual_ar
