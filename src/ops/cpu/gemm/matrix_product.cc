#include "ops/cpu/gemm/matrix_product.h"

#include <algorithm>

#include "ops/cpu/gemm/matrix_epilogue.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu_features.h"

namespace shoal::ops::cpu {
namespace {

// Enough to balance the load when a core is taken away or shared; few rows wait for memory, not for a core.
constexpr int64_t kTasksPerThread = 8, kTasksOfFewRows = 4;
constexpr int64_t kSmallestTask = 32 << 10;   // bytes of weights: about 2 us, ten times the cost of a claim
constexpr int64_t kInputInCache = 256 << 10;  // bytes of input rows that stay in L2 beside two panels
constexpr int64_t kMostRows = 256;            // of one task

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of one segment times a range of panels, on one thread.
class ProductTask {
 public:
  explicit ProductTask(const Product& product)
      : product_(product),
        kernel_(kernel_for(product.weight.format.weights)),
        layout_(panel_layout(product.weight.format, product.weight.taps, product.weight.depth)),
        weights_(static_cast<const char*>(product.weight.storage.view().data())) {}

  void run(const Segment& rows, int64_t panel_begin, int64_t panel_end) const {
    const int64_t blocks = divide_up(rows.rows, kernel_.most_rows);
    const int64_t even = divide_up(rows.rows, blocks);  // 7 rows are 4 + 3, not 6 + 1
    const int64_t height = divide_up(even, kernel_.row_step) * kernel_.row_step;
    const int width =
        std::max(kernel_.panels_for(static_cast<int>(std::min(height, rows.rows))), product_.swiglu ? 2 : 1);
    // Panels outside rows: a few panels stay in L2 while all rows pass them.
    for (int64_t panel = panel_begin; panel < panel_end; panel += width)
      for (int64_t row = 0; row < rows.rows; row += height)
        run_block({rows.input_row + row, rows.output_row + row, std::min(height, rows.rows - row)}, panel,
                  std::min<int64_t>(width, panel_end - panel));
  }

 private:
  void run_block(const Segment& rows, int64_t panel, int64_t panels) const {
    alignas(64) float sums[kMostSums];
    const StagedInput& input = product_.input;
    const bool scaled = !input.scales.empty(), offset = !input.offsets.empty(), summed = !input.sums.empty();
    kernel_.multiply({.input = static_cast<const char*>(input.data) +
                               rows.input_row * input.row_stride * size_of(input.dtype),
                      .row_stride = input.row_stride,
                      .tap_stride = input.tap_stride,
                      .weights = weights_ + panel * layout_.panel_stride,
                      .panel_stride = layout_.panel_stride,
                      .taps = layout_.taps,
                      .depth = layout_.depth,
                      .rows = static_cast<int>(rows.rows),
                      .panels = static_cast<int>(panels),
                      .sums = sums,
                      .input_scales = scaled ? input.scales.row<float>(rows.input_row) : nullptr,
                      .input_offsets = offset ? input.offsets.row<int32_t>(rows.input_row) : nullptr,
                      .scale_stride = scaled ? input.scales.stride(0) : 0,
                      .group = product_.weight.format.group,
                      .input_sums = summed ? input.sums.row<float>(rows.input_row) : nullptr,
                      .sum_stride = summed ? input.sums.stride(0) : 0});
    if (offset) scale_sums(sums, rows.rows, panel, panels);
    if (!product_.swiglu) return finish(sums, rows, panel, panels);
    for (int64_t row = 0; row < rows.rows; ++row)
      finish_swiglu(sums + row * panels * kPanel, panel, panels,
                    product_.y.row<float>(rows.output_row + row));
  }

  void scale_sums(float* sums, int64_t rows, int64_t panel, int64_t panels) const {
    const int64_t count = panels * kPanel;
    vector_kernels().finish_rows({.sums = sums,
                                  .sums_stride = count,
                                  .rows = rows,
                                  .count = count,
                                  .bias = nullptr,
                                  .scale = product_.weight.scales.view().row<float>(panel),
                                  .accumulate = false,
                                  .y = sums,
                                  .y_stride = count});
  }

  void finish(float* sums, const Segment& rows, int64_t panel, int64_t panels) const {
    const int64_t first = panel * kPanel;
    const FinishedBlock block{.first = first,
                              .count = std::min(panels * kPanel, product_.weight.outputs - first),
                              .rows = rows.rows,
                              .y = product_.y.row<float>(rows.output_row) + first,
                              .y_stride = product_.y.stride(0)};
    finish_rows(sums, panels * kPanel, block, product_.weight, product_.epilogue);
  }

  void finish_swiglu(const float* sums, int64_t panel, int64_t panels, float* y) const {
    for (int64_t pair = 0; pair < panels; pair += 2) {
      const int64_t first = (panel + pair) / 2 * kPanel;
      const int64_t count = std::min(kPanel, product_.weight.outputs - first);
      finish_swiglu_row(sums + pair * kPanel, sums + (pair + 1) * kPanel, count, y + first);
    }
  }

  const Product& product_;
  const ProductKernel& kernel_;
  PanelLayout layout_;
  const char* weights_;
};

// How a product is cut: pieces of rows x groups of panels.
struct Cut {
  int64_t most_rows;  // of a piece
  int64_t pieces;
  int64_t group;  // panels
  int64_t groups;
};

int64_t count_pieces(std::span<const Segment> segments, int64_t most_rows) {
  int64_t pieces = 0;
  for (const Segment& segment : segments) pieces += divide_up(segment.rows, most_rows);
  return pieces;
}

Cut cut(const Product& product, const ProductKernel& kernel, int threads) {
  const int64_t row_bytes = std::max<int64_t>(1, product.input.row_stride * size_of(product.input.dtype));
  Cut result;
  result.most_rows = std::clamp<int64_t>(kInputInCache / row_bytes, kernel.most_rows, kMostRows) /
                     kernel.most_rows * kernel.most_rows;
  result.pieces = count_pieces(product.input.segments, result.most_rows);
  const int64_t panels = product.weight.storage.dim(0);
  const int64_t panel_bytes = product.weight.storage.bytes() / panels;
  int64_t rows = 0;
  for (const Segment& segment : product.input.segments) rows += segment.rows;
  const int64_t per_thread = rows <= kernel.most_rows ? kTasksOfFewRows : kTasksPerThread;
  const int64_t tasks = threads == 1 ? 1 : threads * per_thread;
  const int64_t wanted_groups = divide_up(tasks, result.pieces);
  result.group = std::max(divide_up(panels, wanted_groups), divide_up(kSmallestTask, panel_bytes));
  result.group = std::min(divide_up(result.group, kMostPanels) * kMostPanels, panels);
  result.groups = divide_up(panels, result.group);
  return result;
}

// Piece `index` of the segments.
Segment piece(std::span<const Segment> segments, int64_t most_rows, int64_t index) {
  for (const Segment& segment : segments) {
    const int64_t pieces = divide_up(segment.rows, most_rows);
    if (index < pieces) {
      const int64_t row = index * most_rows;
      return {segment.input_row + row, segment.output_row + row, std::min(most_rows, segment.rows - row)};
    }
    index -= pieces;
  }
  CHECK(false, "piece beyond the last");
  return {};
}

}  // namespace

const MatrixKernels& matrix_kernels() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case CpuIsa::portable:
      break;
    case CpuIsa::avx2:
      return kAvx2MatrixKernels;
    case CpuIsa::avx512:
      return kAvx512MatrixKernels;
    case CpuIsa::avx512_bf16:
      return kAvx512Bf16MatrixKernels;
    case CpuIsa::amx:
      return kAmxMatrixKernels;
  }
#endif
  return kPortableMatrixKernels;
}

const ProductKernel& kernel_for(DType weights) {
  const MatrixKernels& kernels = matrix_kernels();
  if (weights == DType::i8) return kernels.i8;
  if (weights == DType::u4) return kernels.u4;
  return weights == DType::f32 ? kernels.f32 : kernels.bf16;
}

void multiply(Context& ctx, const Product& product) {
  const MatrixKernels& kernels = matrix_kernels();
  const ProductTask task(product);
  const Cut parts = cut(product, kernel_for(product.weight.format.weights), ctx.team->size());
  // Neighbouring tasks share their panels: they run at the same time and find them in the shared cache.
  ctx.team->parallel_for(parts.pieces * parts.groups, 1, [&](int64_t begin, int64_t end, int) {
    if (kernels.enter) kernels.enter();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / parts.pieces * parts.group;
      task.run(piece(product.input.segments, parts.most_rows, i % parts.pieces), panel,
               std::min(panel + parts.group, product.weight.storage.dim(0)));
    }
    if (kernels.leave) kernels.leave();
  });
}

}  // namespace shoal::ops::cpu
