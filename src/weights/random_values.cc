#include "weights/random_values.h"

#include <span>

#include "base/philox.h"

namespace shoal::weights {
namespace {

constexpr size_t kTable = 65521;  // a prime, so that rows of a matrix do not repeat

}  // namespace

RandomValues::RandomValues(uint64_t seed, ThreadTeam& team) : seed_(seed), team_(team), table_(kTable) {
  for (size_t i = 0; i < table_.size(); ++i) {
    const PhiloxBlock block = philox4x32(seed, {static_cast<uint32_t>(i), 0, 0, 0});
    table_[i] = 2 * uniform_open(block[0]) - 1;
  }
}

Tensor RandomValues::draw(std::string_view name, const Shape& shape, Spread spread) const {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<uint8_t>(letter)) * 16777619u;
  const size_t start = philox4x32(seed_, {hash, 1, 0, 0})[0] % kTable;
  Tensor values(DType::f32, shape);
  const std::span<float> out = values.span<float>();
  team_.parallel_for(values.elements(), int64_t{1} << 18, [&](int64_t begin, int64_t end, int) {
    size_t from = (start + static_cast<size_t>(begin)) % kTable;
    for (int64_t i = begin; i < end; ++i) {
      out[static_cast<size_t>(i)] = spread.centre + spread.spread * table_[from];
      if (++from == kTable) from = 0;
    }
  });
  return values;
}

}  // namespace shoal::weights
