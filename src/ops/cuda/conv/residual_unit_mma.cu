#include <algorithm>

#include "ops/cuda/conv/residual_unit_mma.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

// Of a multiprocessor, by its registers and its shared memory, of which each block takes 1 KB more.
template <int kChannels>
int blocks_together(const Machine& machine) {
  using Sizes = MmaUnitSizes<kChannels>;
  constexpr int64_t kOwn = 1 << 10;
  return static_cast<int>(std::clamp((machine.shared_bytes + kOwn) / (Sizes::kBytes + kOwn), int64_t{1},
                                     int64_t{Sizes::kBlocks}));
}

template <typename T, int kChannels>
void launch_unit(Context& ctx, const UnitArguments& arguments) {
  using Sizes = MmaUnitSizes<kChannels>;
  const Machine machine = machine_of(ctx);
  const int blocks = std::min(most_pieces(arguments.source, Sizes::kRows),
                              machine.multiprocessors * blocks_together<kChannels>(machine));
  launch(ctx, "residual unit",
         {.blocks = dim3(static_cast<unsigned>(blocks)),
          .threads = dim3(Sizes::kThreads),
          .shared_bytes = Sizes::kBytes},
         mma_unit_kernel<T, kChannels>, arguments);
}

}  // namespace

void launch_mma_unit(Context& ctx, DType operand, const UnitArguments& arguments) {
  with_operand_type(operand, [&](auto type) {
    with_unit_channels(arguments.source.channels,
                       [&]<int kChannels> { launch_unit<decltype(type), kChannels>(ctx, arguments); });
  });
}

}  // namespace shoal::ops::cuda
