// How far self attention may be from its definition.
#pragma once

#include "ops/sequence_testing.h"

namespace shoal::ops::self_attention_testing {

// Columns [begin, begin + dim) of every row, for one head of the queries, the keys or the values.
inline ref::Values head_of(const std::vector<float>& rows, int64_t width, int64_t begin, int64_t dim) {
  ref::Values some;
  for (auto row = rows.begin(); row != rows.end(); row += width)
    some.insert(some.end(), row + begin, row + begin + dim);
  return some;
}

inline void expect_oracle(const std::vector<float>& qkv, const std::vector<float>& out, int64_t heads,
                          int64_t dim) {
  const int64_t width = heads * dim, rows = static_cast<int64_t>(out.size()) / width;
  for (int64_t head = 0; head < heads; ++head) {
    const ref::Values queries = head_of(qkv, 3 * width, head * dim, dim);
    const ref::Values keys = head_of(qkv, 3 * width, width + head * dim, dim);
    const ref::Values values = head_of(qkv, 3 * width, 2 * width + head * dim, dim);
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    for (int64_t row = 0; row < rows; row += rows > 40 ? 13 : 1) {
      const ref::Values q = slice(queries, row * dim, dim);
      // As attention_test.cc: roundings of scores, weights, chains over a chunk and of merges.
      const double chunks = static_cast<double>(rows / kAttentionChunk + 2);
      const double relative = 2 * static_cast<double>(dim + 4) * ref::score_magnitude(q, keys) +
                              kAttentionChunk + 16 + 8 * chunks;
      const ref::Values bound(static_cast<size_t>(dim), 2 * kUnit * relative * largest + 1e-37);
      const auto at = out.begin() + (row * heads + head) * dim;
      expect_close({at, at + dim}, ref::attention(q, keys, values), bound);
    }
  }
}

}  // namespace shoal::ops::self_attention_testing
