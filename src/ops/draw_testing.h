// Logits and settings of all kinds, for the tests of the draws.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ops/draw.h"
#include "ops/matrix_testing.h"
#include "ops/op_testing.h"

namespace shoal::ops {

enum class LogitKind {
  flat,
  nearly_uniform,
  uniform,
  peaked,
  ties,
  two_levels,
  one_peak,
  masked,
  huge,
  zeros
};
constexpr int kLogitKinds = 10;

// Some entry can always be drawn, the last one of a masked row at least.
inline std::vector<float> logits_of(LogitKind kind, int64_t vocabulary, unsigned seed) {
  const auto n = static_cast<size_t>(vocabulary);
  const float scale = kind == LogitKind::nearly_uniform ? 1e-3f
                      : kind == LogitKind::peaked       ? 4.0f
                      : kind == LogitKind::one_peak     ? 0.1f
                      : kind == LogitKind::huge         ? 1e30f
                                                        : 1.0f;
  std::vector<float> logits = random_values(vocabulary, seed, scale);
  if (kind == LogitKind::uniform) logits.assign(n, -2.5f);
  if (kind == LogitKind::one_peak) logits[n / 3] = 40;
  for (size_t i = 0; i < n; ++i) {
    if (kind == LogitKind::ties) logits[i] = std::round(2 * logits[i]) / 2;
    if (kind == LogitKind::two_levels) logits[i] = logits[i] > 1 ? 2.0f : 1.5f;
    if (kind == LogitKind::zeros) logits[i] = i % 2 == 0 ? -0.0f : 0.0f;
    if (kind == LogitKind::masked && i % 5 != 2) logits[i] = -std::numeric_limits<float>::infinity();
  }
  if (kind == LogitKind::masked) logits[n - 1] = 0.5f;
  return logits;
}

// Settings of all kinds, one after the other. Lists are left empty.
class DrawRows {
 public:
  explicit DrawRows(uint64_t seed) : generator_(seed) {}

  DrawRow next() {
    return {.seed = generator_(),
            .frame = static_cast<uint32_t>(generator_()),
            .top_k = one_of<int32_t>({0, 0, 0, 1, 3, 30, 1000}),
            .temperature = one_of({0.0f, 0.5f, 0.8f, 1.0f, 2.0f}),
            .top_p = one_of({0.0f, 1e-3f, 0.3f, 0.7f, 0.8f, 0.95f, 0.9999f, 1.0f}),
            .repetition_penalty = one_of({1.0f, 0.7f, 1.3f})};
  }
  int32_t below(int64_t limit) { return static_cast<int32_t>(generator_() % static_cast<uint64_t>(limit)); }

 private:
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[generator_() % values.size()];
  }

  std::mt19937_64 generator_;
};

class DrawMachine : public OpTest {
 protected:
  Tensor put_settings(std::span<const DrawRow> rows) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(rows.data()), rows.size_bytes());
    return put(bytes, {std::ssize(rows), static_cast<int64_t>(sizeof(DrawRow))});
  }
};

}  // namespace shoal::ops
