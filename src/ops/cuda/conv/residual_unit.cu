#include <algorithm>

#include "ops/cuda/conv/residual_unit.cuh"
#include "ops/cuda/conv/residual_unit.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

// The matrix in 16 bits: weights of 8 are widened in ctx.workspace, and the kernel that is started next waits
// for them.
const void* wide_weights(Context& ctx, const PackedMatrix& matrix) {
  const Product product{.shape = shape_of(matrix),
                        .format = matrix.format,
                        .weight = matrix.storage.view().data(),
                        .scales = scales_of(matrix)};
  return is_narrow(product) ? widened(ctx, product).weight : product.weight;
}

template <typename T, int kChannels>
void launch_unit(Context& ctx, const ResidualConvs& convs, UnitArguments arguments) {
  using Sizes = UnitSizes<kChannels>;
  const auto stages_of = [&](const PackedMatrix& matrix, int outputs) {
    return weight_map(wide_weights(ctx, matrix), shape_of(matrix), outputs / kTileOutputs,
                      Sizes::kStageTiles);
  };
  arguments.wide = stages_of(*convs.wide, Sizes::kWideOutputs);
  arguments.narrow = stages_of(*convs.narrow, Sizes::kNarrowOutputs);
  const int blocks =
      std::min(most_pieces(arguments.source, UnitSizes<kChannels>::kRows), machine_of(ctx).multiprocessors);
  launch(ctx, "residual unit",
         {.blocks = dim3(static_cast<unsigned>(blocks)),
          .threads = dim3(UnitSizes<kChannels>::kThreads),
          .shared_bytes = static_cast<size_t>(UnitShared<kChannels>::kBytes)},
         unit_kernel<T, kChannels>, arguments);
}

// Calls what.operator()<channels>(), if there is a kernel for so many channels. Returns whether there is.
template <typename What>
bool with_channels(int64_t channels, What&& what) {
  switch (channels) {
    case 64:
      return what.template operator()<64>(), true;
    case 96:
      return what.template operator()<96>(), true;
    case 128:
      return what.template operator()<128>(), true;
    case 192:
      return what.template operator()<192>(), true;
    case 256:
      return what.template operator()<256>(), true;
    case 384:
      return what.template operator()<384>(), true;
    default:
      return false;
  }
}

const float* values_of(TensorView view) { return view.empty() ? nullptr : view.as<float>(); }

// `into` says where the rows go.
void run_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
              const ResidualConvs& convs, UnitArguments into) {
  const Workspace::Scope scope(*ctx.workspace);
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  const ConvSource source = source_of({x, rows, history, convs.wide_alpha}, (kUnitTaps - 1) * convs.dilation);
  into.source = source;
  into.wide_bias = values_of(wide.bias);
  into.narrow_bias = values_of(narrow.bias);
  into.narrow_alpha = convs.narrow_alpha.as<float>();
  into.dilation = static_cast<int>(convs.dilation);
  into.vectors = has_vector_rows(source);
  with_operand_type(wide.format.operand, [&](auto type) {
    with_channels(wide.outputs,
                  [&]<int kChannels> { launch_unit<decltype(type), kChannels>(ctx, convs, into); });
  });
  update_history(ctx, source, wide.format.operand);
}

}  // namespace

bool has_unit_kernel(const Context& ctx, const ResidualConvs& convs) {
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  bool fits = false;
  return has_wgmma(ctx) && wide.format.operand != DType::f32 && narrow.format == wide.format &&
         wide.taps == kUnitTaps && convs.dilation <= kUnitMostDilation && !convs.wide_alpha.empty() &&
         !convs.narrow_alpha.empty() &&
         with_channels(
             wide.outputs,
             [&]<int kChannels> { fits = machine_of(ctx).shared_bytes >= UnitShared<kChannels>::kBytes; }) &&
         fits;
}

bool unit_kernel_makes_ready(const ResidualConvs& convs) {
  bool makes = false;
  with_channels(convs.wide->outputs, [&]<int kChannels> { makes = UnitSizes<kChannels>::kMakesReady; });
  return makes;
}

void residual_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                           const ResidualConvs& convs, TensorView y) {
  run_unit(ctx, x, rows, history, convs, {.y = y.as<float>()});
}

void ready_unit_at_once(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                        const ResidualConvs& convs, const ConvReader& reader, TensorView y) {
  run_unit(ctx, x, rows, history, convs,
           {.ready = y.data(),
            .ready_alpha = reader.snake_alpha.as<float>(),
            .ready_look_back = static_cast<int>(reader.look_back)});
}

}  // namespace shoal::ops::cuda
