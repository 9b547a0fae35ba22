// Residual units of a codec in one kernel: which kernel, and its start.
#pragma once

#include <optional>

#include "ops/conv1d.h"
#include "ops/cuda/device/machine.h"

namespace shoal::ops::cuda {

// Both give the bits of the two convolutions one by one.
//   wgmma  residual_unit.cuh: compute capability 9.0, up to 227 KB of shared memory
//   mma    residual_unit_mma.cuh: 8.0 and later, at most 96 KB
enum class UnitKernel : uint8_t { wgmma, mma };

// Whether the kernel can do it at all: 64, 96, 128, 192, 256 or 384 channels, 16 bits, snakes before both
// convolutions, dilations of at most 9, and a GPU that it runs on.
bool can_do(UnitKernel kernel, const ResidualConvs& convs, const Machine& machine);
// The kernel of a GPU: wgmma where it can do it, else mma; none where neither can.
std::optional<UnitKernel> choose_unit_kernel(const ResidualConvs& convs, const Machine& machine);
// Whether rows can be made ready: not of 96 channels, whose reader in a codec takes f32 rows.
bool unit_kernel_makes_ready(const ResidualConvs& convs);

// By a kernel of the caller's choice (can_do): y = x + conv1(snake(conv7(snake(x)))), and the history is
// replaced.  input: with the snake before the wide convolution; y: f32 [rows, channels], not x.
void residual_unit_at_once(Context& ctx, UnitKernel kernel, const ConvInput& input,
                           const ResidualConvs& convs, TensorView y);
// The same into rows that are ready for the reader (residual_unit_for).
void ready_unit_at_once(Context& ctx, UnitKernel kernel, const ConvInput& input, const ResidualConvs& convs,
                        const ConvReader& reader, TensorView y);

}  // namespace shoal::ops::cuda
