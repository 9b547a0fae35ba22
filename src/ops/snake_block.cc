#include "ops/snake_block.h"

#include <array>

#include "ops/conv1d.h"
#include "ops/cuda_backend.h"
#include "ops/segment_norm.h"

namespace shoal::ops {
namespace {

void check_half(const SnakeUnit::Half& half, int64_t channels, int64_t segments) {
  const PackedMatrix& conv = *half.conv;
  CHECK(conv.depth == channels && conv.outputs == channels && conv.taps % 2 == 1, "snake_block: ", conv.depth,
        " -> ", conv.outputs, ", ", conv.taps, " taps for ", channels, " channels");
  CHECK(half.dilation >= 1, "snake_block: dilation ", half.dilation);
  CHECK(half.alpha.dtype() == DType::f32 && half.alpha.shape() == Shape{channels}, "snake_block: alpha is ",
        half.alpha.shape());
  CHECK(half.style.dtype() == DType::f32 && half.style.rank() == 2 && half.style.dim(0) == segments &&
            half.style.dim(1) == 2 * channels,
        "snake_block: style is ", half.style.shape());
}

// All rows except those at both ends that see less than the whole reach; these are in gaps. They do not
// depend on the segments' lengths, so that a captured graph works for other lengths.
void centred_conv1d(Context& ctx, TensorView x, const Segments& segments, const SnakeUnit::Half& half,
                    TensorView y, const Epilogue& epilogue = {}) {
  const int64_t reach = (half.conv->taps - 1) / 2 * half.dilation, last = segments.count() - 1;
  const int64_t begin = segments.begin(0), end = segments.begin(last) + segments.rows(last);
  CHECK(reach <= begin && end + reach <= x.dim(0), "snake_block: ", reach, " rows of reach, gaps of ", begin,
        " and ", x.dim(0) - end);
  valid_conv1d(ctx, x, *half.conv, half.dilation, y.slice(reach, y.dim(0) - reach), epilogue);
}

// By the ops that it is made of.
void compose(Context& ctx, TensorView x, const Segments& segments, std::span<const SnakeUnit> units,
             float eps, TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView between = ctx.workspace->like(x);
  const TensorView input = ctx.workspace->alloc(product_input(ctx, *units[0].first.conv), x.shape());
  const auto styled = [&](TensorView from, const SnakeUnit::Half& half) {
    adain(ctx, from, segments, half.style, eps, {.snake_alpha = half.alpha}, input);
  };
  TensorView held = x;
  for (const SnakeUnit& unit : units) {
    styled(held, unit.first);
    centred_conv1d(ctx, input, segments, unit.first, between);
    styled(between, unit.second);
    if (held.data() != y.data()) segment_sum(ctx, std::array{x}, segments, 1, 1, y);
    held = y;
    centred_conv1d(ctx, input, segments, unit.second, y, {.accumulate = true});
  }
}

}  // namespace

void snake_block(Context& ctx, TensorView x, const Segments& segments, std::span<const SnakeUnit> units,
                 float eps, TensorView y) {
  check_segments("snake_block", segments);
  const Shape shape{segments.total_rows(), x.rank() == 2 ? x.dim(1) : 0};
  CHECK(x.dtype() == DType::f32 && x.shape() == shape && x.is_contiguous(), "snake_block: x is ", x.shape());
  CHECK(y.dtype() == DType::f32 && y.shape() == shape && y.is_contiguous() &&
            (y.is_sized_only() || y.data() != x.data()),
        "snake_block: y is ", y.shape());
  CHECK(!units.empty(), "snake_block: no units");
  for (const SnakeUnit& unit : units)
    for (const SnakeUnit::Half* half : {&unit.first, &unit.second})
      check_half(*half, x.dim(1), segments.count());
  if (segments.count() == 0) return;
  if (!on_cpu(ctx) && cuda::has_snake_block(ctx, units))
    return cuda::snake_block(ctx, x, segments, units, eps, y);
  compose(ctx, x, segments, units, eps, y);
}

}  // namespace shoal::ops
