#include "ops/cpu/gemm/triangle.h"

#include <algorithm>
#include <cmath>

namespace shoal::ops::cpu {
namespace {

typedef double FactorLanes __attribute__((vector_size(16)));
constexpr int64_t kFactorBlock = 48;  // columns that are finished together: their rows stay in a cache
constexpr int64_t kFactorGrain = 8;   // rows

// The product of two rows from `begin` on.
double product_of_rows(const double* a, const double* b, int64_t begin, int64_t end) {
  FactorLanes sums[4] = {};
  int64_t k = begin;
  for (; k + 8 <= end; k += 8)
    for (int lane = 0; lane < 4; ++lane) {
      FactorLanes x, y;
      __builtin_memcpy(&x, a + k + 2 * lane, sizeof x);
      __builtin_memcpy(&y, b + k + 2 * lane, sizeof y);
      sums[lane] += x * y;
    }
  double sum = 0;
  for (; k < end; ++k) sum += a[k] * b[k];
  for (const FactorLanes& lanes : sums) sum += lanes[0] + lanes[1];
  return sum;
}

}  // namespace

std::vector<double> upper_factor(ThreadTeam& team, TensorView matrix, double damping) {
  const int64_t n = matrix.dim(0);
  std::vector<double> factor(static_cast<size_t>(n * n));
  const auto row = [&](int64_t i) { return factor.data() + i * n; };
  // Entry j of row i, when the later ones of both are known.
  const auto finish = [&](int64_t i, int64_t j) {
    row(i)[j] = (row(i)[j] - product_of_rows(row(i), row(j), j + 1, n)) / row(j)[j];
  };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j) row(i)[j] = double{matrix.row<float>(i)[j]} + (i == j ? damping : 0);
  for (int64_t end = n; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kFactorBlock);
    for (int64_t j = end - 1; j >= begin; --j) {
      const double square = row(j)[j] - product_of_rows(row(j), row(j), j + 1, n);
      if (!(square > 0 && std::isfinite(square))) return {};
      row(j)[j] = std::sqrt(square);
      for (int64_t i = begin; i < j; ++i) finish(i, j);
    }
    team.parallel_for(begin, kFactorGrain, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i)
        for (int64_t j = end - 1; j >= begin; --j) finish(i, j);
    });
    end = begin;
  }
  return factor;
}

}  // namespace shoal::ops::cpu
