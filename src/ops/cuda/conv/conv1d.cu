#include "ops/conv1d.h"
#include "ops/cuda/conv/conv_input.cuh"
#include "ops/cuda/conv/conv_kernels.cuh"
#include "ops/cuda/conv/residual_unit.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/run.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

// From this many rows on a fused residual unit is faster (H200, UnitKernel::wgmma; of the other the same is
// assumed): with fewer, most multiprocessors have no piece, and the others take long for many channels.
int64_t least_rows_at_once(int64_t channels) { return channels <= 96 ? 1024 : channels <= 192 ? 4096 : 8192; }

std::optional<UnitKernel> unit_kernel_of(const Context& ctx, const ResidualConvs& convs) {
  return choose_unit_kernel(convs, machine_of(ctx));
}

Product product_of(const PreparedRows& input, const PackedMatrix& weight, const ProductEpilogue& epilogue,
                   int64_t rows) {
  Product product = with_input(product_by(weight, rows, epilogue), input.x);
  product.taps = input.taps;
  return product;
}

// The rows unchanged, if there is no history.
bool needs_no_preparation(const ConvSource& source, const PackedMatrix& weight) {
  return weight.format.operand == DType::f32 && source.look_back == 0 && !source.alpha;
}

// Both convolutions in 16 bits: the first result passes through the second snake on its way to memory, where
// the second convolution reads it in place.
void residual_product(Context& ctx, TensorView x, const PreparedRows& input, const ResidualConvs& convs) {
  const int64_t rows = x.dim(0), channels = x.dim(1), width = (channels + 7) / 8 * 8;
  PreparedRows between;
  between.x = ctx.workspace->alloc(convs.wide->format.operand, {rows, width});
  if (width > channels) cuda::fill_zero(ctx, between.x);
  run_convolution(ctx, product_of(input, *convs.wide, into(between.x, *convs.wide), rows),
                  convs.narrow_alpha.as<float>());
  run_convolution(ctx,
                  product_of(between, *convs.narrow, into(x, *convs.narrow, {.accumulate = true}), rows));
}

}  // namespace

void causal_conv1d(Context& ctx, const ConvInput& input, const PackedMatrix& weight, int64_t dilation,
                   TensorView y, const Epilogue& epilogue) {
  const Workspace::Scope scope(*ctx.workspace);
  const ConvSource source = source_of(input, (weight.taps - 1) * dilation);
  const ProductEpilogue result = into(y, weight, epilogue);
  if (has_one_output(weight, source)) return convolve_to_one_output(ctx, source, weight, result);
  PreparedRows prepared;
  if (input.x.dtype() != DType::f32)
    prepared = adopt_rows(ctx, source, dilation, input.x);
  else if (needs_no_preparation(source, weight))
    prepared.x = input.x;
  else
    prepared = prepare_rows(ctx, source, dilation, weight.format.operand);
  const Product product = product_of(prepared, weight, result, source.rows);
  if (has_one_input(product)) return convolve_one_input(ctx, product);
  run_convolution(ctx, product);
}

void valid_conv1d(Context& ctx, TensorView x, const PackedMatrix& weight, int64_t dilation, TensorView y,
                  const Epilogue& epilogue) {
  const Workspace::Scope scope(*ctx.workspace);
  if (!is_product_operand(x, weight.format.operand)) x = product_operand(ctx, x, weight.format.operand);
  const PreparedRows rows{.x = x, .taps = {.dilation = dilation}};
  run_convolution(ctx, product_of(rows, weight, into(y, weight, epilogue), y.dim(0)));
}

bool residual_unit_is_apart(const Context& ctx, const ResidualConvs& convs, int64_t rows) {
  return rows >= least_rows_at_once(convs.wide->outputs) && unit_kernel_of(ctx, convs).has_value();
}

bool makes_ready(const Context& ctx, const ResidualConvs& convs, int64_t rows, const ConvReader& reader) {
  return cuda::residual_unit_is_apart(ctx, convs, rows) && unit_kernel_makes_ready(convs) &&
         reader.weight->format.operand == convs.wide->format.operand;
}

void residual_unit_for(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                       const ResidualConvs& convs, const ConvReader& reader, TensorView y) {
  ready_unit_at_once(ctx, unit_kernel_of(ctx, convs).value(), {x, rows, history, convs.wide_alpha}, convs,
                     reader, y);
}

void residual_unit(Context& ctx, TensorView x, const ConvRows& rows, const ConvHistory& history,
                   const ResidualConvs& convs, TensorView y) {
  // In a plan they have no memory, and are apart where they may be (dac's run_units).
  const bool apart =
      is_planning(ctx) ? cuda::residual_unit_is_apart(ctx, convs, x.dim(0)) : y.data() != x.data();
  const ConvInput input{x, rows, history, convs.wide_alpha};
  if (apart) return residual_unit_at_once(ctx, unit_kernel_of(ctx, convs).value(), input, convs, y);
  const Workspace::Scope scope(*ctx.workspace);
  const PackedMatrix &wide = *convs.wide, &narrow = *convs.narrow;
  if (wide.format.operand == DType::f32 || narrow.format != wide.format || convs.narrow_alpha.empty()) {
    const TensorView between = ctx.workspace->like(x);
    cuda::causal_conv1d(ctx, input, wide, convs.dilation, between, {});
    return cuda::causal_conv1d(ctx, {between, rows, {}, convs.narrow_alpha}, narrow, 1, x,
                               {.accumulate = true});
  }
  const ConvSource source = source_of(input, (wide.taps - 1) * convs.dilation);
  residual_product(ctx, x, prepare_rows(ctx, source, convs.dilation, wide.format.operand), convs);
}

}  // namespace shoal::ops::cuda
