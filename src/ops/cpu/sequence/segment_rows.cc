// Ops over the rows of segments. Rows in gaps become zeros.
#include "ops/cpu/rows/segment_rows.h"

#include <algorithm>
#include <cstring>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

void zero_rows(TensorView y, int64_t begin, int64_t end) {
  const int64_t element = size_of(y.dtype());
  for (int64_t row = begin; row < end; ++row)
    std::memset(static_cast<char*>(y.data()) + row * y.stride(0) * element, 0,
                static_cast<size_t>(y.dim(1) * element));
}

void sum_row(std::span<const TensorView> x, int64_t row, float factor, float slope, TensorView y) {
  const float* terms[kMostSegmentTerms];
  for (size_t i = 0; i < x.size(); ++i) terms[i] = x[i].row<float>(row);
  const int count = static_cast<int>(x.size());
  const VectorKernels& kernels = vector_kernels();
  if (y.dtype() == DType::bf16)
    kernels.leaky_sum_bf16(terms, count, factor, slope, y.row<uint16_t>(row), y.dim(1));
  else
    kernels.leaky_sum(terms, count, factor, slope, y.row<float>(row), y.dim(1));
}

}  // namespace

void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y) {
  ctx.team->parallel_for(y.dim(0), rows_per_task(y.dim(1)), [&](int64_t begin, int64_t end, int) {
    for_each_piece(
        segments, begin, end,
        [&](int64_t, int64_t first, int64_t last) {
          for (int64_t row = first; row < last; ++row) sum_row(x, row, factor, slope, y);
        },
        [&](int64_t first, int64_t last) { zero_rows(y, first, last); });
  });
}

void mirror_first_rows(const Segments& segments, TensorView x) {
  if (x.is_sized_only()) return;
  for (int64_t s = 0; s < segments.count(); ++s) {
    const int64_t first = segments.begin(s);
    std::copy_n(x.row<float>(first + 2), x.dim(1), x.row<float>(first));
  }
}

void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y) {
  const int64_t rows = x.dim(0), channels = x.dim(1);
  const VectorKernels& kernels = vector_kernels();
  ctx.team->parallel_for(rows, rows_per_task(2 * channels), [&](int64_t begin, int64_t end, int) {
    for_each_piece(
        segments, begin, end,
        [&](int64_t segment, int64_t first, int64_t last) {
          const int64_t behind = segments.begin(segment) + segments.rows(segment);
          for (int64_t row = first; row < last; ++row)
            kernels.double_row(x.row<float>(row), row + 1 < behind ? x.row<float>(row + 1) : nullptr,
                               weight.as<float>(), bias.as<float>(), y.row<float>(2 * row),
                               y.row<float>(2 * row + 1), channels);
        },
        [&](int64_t first, int64_t last) { zero_rows(y, 2 * first, 2 * last); });
  });
}

}  // namespace shoal::ops::cpu
