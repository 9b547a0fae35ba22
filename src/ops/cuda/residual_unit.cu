#include <algorithm>

#include "ops/cuda/launch.cuh"
#include "ops/cuda/residual_unit.cuh"
#include "ops/cuda/residual_unit.h"
#include "ops/cuda/tile_product.h"
#include "ops/cuda/wide_product.h"

namespace shoal::ops::cuda {
namespace {

template <typename T, int kChannels>
void launch_unit(Context& ctx, const UnitArguments& arguments) {
  const int blocks = std::min(arguments.pieces, tile_machine(ctx).multiprocessors);
  launch(ctx, "residual unit",
         {.blocks = dim3(static_cast<unsigned>(blocks)),
          .threads = dim3(UnitSizes<kChannels>::kThreads),
          .shared_bytes = static_cast<size_t>(UnitShared<kChannels>::kBytes)},
         unit_kernel<T, kChannels>, arguments);
}

template <typename T>
void launch_unit(Context& ctx, int channels, const UnitArguments& arguments) {
  if (channels == 96)
    launch_unit<T, 96>(ctx, arguments);
  else if (channels == 192)
    launch_unit<T, 192>(ctx, arguments);
  else
    launch_unit<T, 384>(ctx, arguments);
}

const float* values_of(TensorView view) { return view.empty() ? nullptr : view.as<float>(); }

}  // namespace

bool has_unit_kernel(const Context& ctx, const ResidualConvs& convs) {
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  return has_wide_kernels(ctx) && wide.dtype != DType::f32 && narrow.dtype == wide.dtype &&
         wide.taps == kUnitTaps && convs.dilation <= kUnitMostDilation && !convs.wide_alpha.empty() &&
         !convs.narrow_alpha.empty() && (wide.outputs == 96 || wide.outputs == 192 || wide.outputs == 384) &&
         tile_machine(ctx).shared_bytes >=
             std::max({UnitShared<96>::kBytes, UnitShared<192>::kBytes, UnitShared<384>::kBytes});
}

void residual_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                           const ResidualConvs& convs, TensorView y) {
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  const ConvSource source = source_of({x, rows, history, convs.wide_alpha}, (kUnitTaps - 1) * convs.dilation);
  const auto stages_of = [](const PackedMatrix& matrix) {  // the same for any number of channels
    return weight_map(matrix.storage.view().data(), shape_of(matrix), UnitSizes<96>::kStageTileRows,
                      kUnitStageTiles);
  };
  const UnitArguments arguments{.wide = stages_of(wide),
                                .narrow = stages_of(narrow),
                                .source = source,
                                .wide_bias = values_of(wide.bias),
                                .narrow_bias = values_of(narrow.bias),
                                .narrow_alpha = convs.narrow_alpha.as<float>(),
                                .y = y.as<float>(),
                                .dilation = static_cast<int>(convs.dilation),
                                .vectors = has_vector_rows(source),
                                .pieces = most_pieces(source, kUnitRows)};
  if (wide.dtype == DType::bf16)
    launch_unit<__nv_bfloat16>(ctx, source.channels, arguments);
  else
    launch_unit<__half>(ctx, source.channels, arguments);
  update_history(ctx, source);
}

}  // namespace shoal::ops::cuda
