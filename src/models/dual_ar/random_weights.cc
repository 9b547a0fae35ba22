#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "models/dual_ar/bind.h"

namespace shoal::dual_ar {
namespace {

// splitmix64: one multiply-xor chain for four bf16 values. Philox would be ten times as slow, and these
// numbers need no statistical quality.
uint64_t hash(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t hash_name(uint64_t seed, const std::string& name) {
  for (char c : name) seed = hash(seed + 0x9e3779b97f4a7c15u + static_cast<unsigned char>(c));
  return seed;
}

Tensor draw(uint64_t seed, ThreadTeam& team, const std::string& name, const Shape& shape) {
  const bool matrix = shape.rank() == 2;
  // Random sign, mantissa, and one of four exponents: the root mean square is about 0.88 * 2^top.
  const int top = matrix ? static_cast<int>(std::lround(0.18 - 0.5 * std::log2(shape[1]))) : -1;
  constexpr uint64_t kLanes = 0x0001000100010001u;  // four bf16 values in a word
  const uint64_t exponent = static_cast<uint64_t>((127 + top) << 7) * kLanes;
  const uint64_t sign_mask = matrix ? 0x8000 * kLanes : 0, lower_mask = matrix ? 0x0180 * kLanes : 0;
  const uint64_t key = hash_name(seed, name);

  Tensor tensor(DType::bf16, shape);
  auto* bytes = static_cast<std::byte*>(tensor.view().data());
  const auto total = static_cast<uint64_t>(tensor.bytes());
  team.parallel_for((tensor.elements() + 3) / 4, int64_t{1} << 16, [&](int64_t begin, int64_t end, int) {
    for (auto word = static_cast<uint64_t>(begin); word < static_cast<uint64_t>(end); ++word) {
      const uint64_t bits = hash(key + word * 0x9e3779b97f4a7c15u);
      const uint64_t values =
          (bits & sign_mask) | (exponent - (bits & lower_mask) + (bits & 0x007f * kLanes));  // no carries
      std::memcpy(bytes + 8 * word, &values, std::min<uint64_t>(8, total - 8 * word));
    }
  });
  return tensor;
}

}  // namespace

std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team) {
  return weights::draw_weights(
      [seed, &team](const std::string& name, const Shape& shape) { return draw(seed, team, name, shape); });
}

}  // namespace shoal::dual_ar
