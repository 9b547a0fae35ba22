#include <algorithm>

#include "ops/cuda/conv/residual_unit.cuh"
#include "ops/cuda/conv/residual_unit.h"
#include "ops/cuda/conv/residual_unit_mma_sizes.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

// The matrix in 16 bits: weights of 8 are widened in ctx.workspace, and the kernel that is started next waits
// for them.
const void* wide_weights(Context& ctx, const PackedMatrix& matrix) {
  const Product product = product_by(matrix);
  return is_narrow(product) ? widened(ctx, product).weight : product.weight;
}

template <typename T, int kChannels>
void launch_unit(Context& ctx, const UnitArguments& unit) {
  using Sizes = UnitSizes<kChannels>;
  const auto stages_of = [](const void* weights, int64_t taps, int outputs) {
    return weight_map(weights, {.outputs = kChannels, .taps = taps, .depth = kChannels},
                      outputs / kTileOutputs, Sizes::kStageTiles);
  };
  WgmmaUnitArguments arguments{unit};
  arguments.wide = stages_of(unit.wide_weights, kUnitTaps, Sizes::kWideOutputs);
  arguments.narrow = stages_of(unit.narrow_weights, 1, Sizes::kNarrowOutputs);
  const int blocks = std::min(most_pieces(unit.source, Sizes::kRows), machine_of(ctx).multiprocessors);
  launch(ctx, "residual unit",
         {.blocks = dim3(static_cast<unsigned>(blocks)),
          .threads = dim3(Sizes::kThreads),
          .shared_bytes = static_cast<size_t>(UnitShared<kChannels>::kBytes)},
         unit_kernel<T, kChannels>, arguments);
}

void launch_wgmma_unit(Context& ctx, DType operand, const UnitArguments& unit) {
  with_operand_type(operand, [&](auto type) {
    with_unit_channels(unit.source.channels,
                       [&]<int kChannels> { launch_unit<decltype(type), kChannels>(ctx, unit); });
  });
}

const float* values_of(TensorView view) { return view.empty() ? nullptr : view.as<float>(); }

// `into` says where the rows go.
void run_unit(Context& ctx, UnitKernel kernel, const ConvInput& input, const ResidualConvs& convs,
              UnitArguments into) {
  const Workspace::Scope scope(*ctx.workspace);
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  const ConvSource source = source_of(input, (kUnitTaps - 1) * convs.dilation);
  into.source = source;
  into.wide_weights = wide_weights(ctx, wide);
  into.narrow_weights = wide_weights(ctx, narrow);
  into.wide_bias = values_of(wide.bias);
  into.narrow_bias = values_of(narrow.bias);
  into.narrow_alpha = convs.narrow_alpha.as<float>();
  into.dilation = static_cast<int>(convs.dilation);
  into.vectors = has_vector_rows(source);
  (kernel == UnitKernel::wgmma ? launch_wgmma_unit : launch_mma_unit)(ctx, wide.format.operand, into);
  update_history(ctx, source, wide.format.operand);
}

// Whether any kernel can do it on some GPU.
bool suits(const ResidualConvs& convs) {
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  return wide.format.operand != DType::f32 && narrow.format == wide.format && wide.taps == kUnitTaps &&
         convs.dilation <= kUnitMostDilation && !convs.wide_alpha.empty() && !convs.narrow_alpha.empty();
}

}  // namespace

bool can_do(UnitKernel kernel, const ResidualConvs& convs, const Machine& machine) {
  const bool runs = kernel == UnitKernel::wgmma ? machine.wgmma : machine.architecture >= 80;
  if (!runs || !suits(convs)) return false;
  int64_t bytes = 0;
  return with_unit_channels(convs.wide->outputs,
                            [&]<int kChannels> {
                              bytes = kernel == UnitKernel::wgmma ? UnitShared<kChannels>::kBytes
                                                                  : MmaUnitSizes<kChannels>::kBytes;
                            }) &&
         machine.shared_bytes >= bytes;
}

std::optional<UnitKernel> choose_unit_kernel(const ResidualConvs& convs, const Machine& machine) {
  for (const UnitKernel kernel : {UnitKernel::wgmma, UnitKernel::mma})
    if (can_do(kernel, convs, machine)) return kernel;
  return std::nullopt;
}

bool unit_kernel_makes_ready(const ResidualConvs& convs) {
  bool makes = false;
  with_unit_channels(convs.wide->outputs, [&]<int kChannels> { makes = UnitSizes<kChannels>::kMakesReady; });
  return makes;
}

void residual_unit_at_once(Context& ctx, UnitKernel kernel, const ConvInput& input,
                           const ResidualConvs& convs, TensorView y) {
  run_unit(ctx, kernel, input, convs, {.y = y.as<float>()});
}

void ready_unit_at_once(Context& ctx, UnitKernel kernel, const ConvInput& input, const ResidualConvs& convs,
                        const ConvReader& reader, TensorView y) {
  run_unit(ctx, kernel, input, convs,
           {.ready = y.data(),
            .ready_alpha = reader.snake_alpha.as<float>(),
            .ready_look_back = static_cast<int>(reader.look_back)});
}

}  // namespace shoal::ops::cuda
