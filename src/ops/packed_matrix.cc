#include "ops/packed_matrix.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"
#include "ops/device_state.h"
#include "ops/round_weights.h"
#include "ops/weight_source.h"

namespace shoal::ops {
namespace {

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

// axis: that of the outputs.
void check_weight(const StoredMatrix& matrix, int lowest_rank, int highest_rank, int axis = 0) {
  const TensorView weight = matrix.weight, scales = matrix.scales;
  CHECK(weight.rank() >= lowest_rank && weight.rank() <= highest_rank, "weight ", weight.shape());
  CHECK(weight.elements() > 0, "weight ", weight.shape());
  if (has_output_scales(weight.dtype()))
    CHECK(scales.dtype() == DType::f32 && scales.shape() == Shape{weight.dim(axis)}, "weights of 8 bits ",
          weight.shape(), " with scales ", scales.shape());
  else if (weight.dtype() == DType::u8)
    CHECK(weight.rank() == 2 && weight.dim(1) == (matrix.depth() + 1) / 2 && scales.dtype() == DType::bf16 &&
              scales.rank() == 2 && scales.dim(0) == weight.dim(0) && scales.is_contiguous() &&
              matrix.minima.dtype() == DType::bf16 && matrix.minima.shape() == scales.shape() &&
              matrix.minima.is_contiguous(),
          "integers ", weight.shape(), " with scales ", scales.shape(), ", minima ", matrix.minima.shape());
  else
    CHECK(is_float(weight.dtype()) && scales.empty(), "weight is ", name_of(weight.dtype()));
}

void add_scales(const StoredMatrix& matrix, WeightSource& source) {
  if (!has_output_scales(matrix.weight.dtype())) return;
  source.scales = matrix.scales.as<float>();
  source.scale_count = matrix.scales.elements();
}

// [outputs, depth] or [outputs, taps, depth].
WeightSource rows_of(const StoredMatrix& matrix) {
  const TensorView weight = matrix.weight;
  WeightSource source{.data = weight.data(), .dtype = weight.dtype(), .outputs = weight.dim(0)};
  source.n_outer_stride = weight.stride(0);
  source.tap_stride = weight.rank() == 3 ? weight.stride(1) : 0;
  source.k_outer_stride = weight.stride(-1);
  add_scales(matrix, source);
  if (weight.dtype() == DType::u8) {
    source.group_scales = matrix.scales.as<Bf16>();
    source.minima = matrix.minima.as<Bf16>();
    source.groups = matrix.scales.dim(1);
  }
  return source;
}

// The bias as f32, each value `repeats` times over (a transposed convolution's phases share it).
Tensor widen_bias(TensorView bias, int64_t outputs, int64_t repeats) {
  if (bias.empty()) return {};
  CHECK(bias.rank() == 1 && bias.dim(0) * repeats == outputs, "bias ", bias.shape(), " for ", outputs,
        " outputs");
  CHECK(is_float(bias.dtype()), "bias is ", name_of(bias.dtype()));
  Tensor wide(DType::f32, {outputs});
  for (int64_t i = 0; i < outputs; ++i)
    wide.as<float>()[i] = load_float(bias.data(), bias.dtype(), i % bias.dim(0));
  return wide;
}

// On a GPU one for each output, in eights, a pair's gate and up in turn.
Shape shape_of_scales(const Context& ctx, const PackRequest& request) {
  if (!on_cpu(ctx)) return {(request.outputs + 7) / 8 * (request.paired ? 2 : 1), 8};
  const Shape shape = cpu::packed_shape(request);
  return {shape[0], shape[3]};
}

// Of weights without memory. What a GPU pads its tiles with is left out.
Tensor sized_storage(const Context& ctx, const PackRequest& request) {
  if (on_cpu(ctx)) return Tensor::sized(cpu::packed_dtype(request), cpu::packed_shape(request));
  const int64_t outputs = request.outputs * (request.paired ? 2 : 1);
  if (request.dtype == DType::u4) {
    const int64_t groups = (request.depth + request.group - 1) / request.group;
    return Tensor::sized(DType::u8, {outputs, (request.depth + 1) / 2 + 4 * groups}, ctx.device);
  }
  return Tensor::sized(request.dtype, {outputs, request.taps, request.depth}, ctx.device);
}

// Quantised weights are packed as they are stored, floats in any format.
void check_stored_as(const PackRequest& request) {
  const auto is_quantised = [](const WeightSource& part) { return part.is_quantised(); };
  if (std::ranges::none_of(request.parts, is_quantised)) return;
  const auto fits = [&](const WeightSource& part) {
    if (part.scales) return request.dtype == part.dtype;
    return part.group_scales && request.dtype == DType::u4 &&
           part.groups == (request.depth + request.group - 1) / request.group;
  };
  if (!std::ranges::all_of(request.parts, fits))
    fail(ErrorCode::unsupported,
         "matrix format: weights are stored in 8 or 4 bits, some or all, and asked for in ",
         name_of(request.dtype), "; expected all in the format and the groups they are stored in");
}

// A matrix in the form that it is packed of: floats that become 4 bits or f8 on a GPU are rounded by the CPU,
// so that there is one rule of rounding.
class PackedForm {
 public:
  PackedForm(Context& ctx, const StoredMatrix& matrix, const MatrixFormat& format) : matrix_(matrix) {
    const TensorView weight = matrix.weight;
    if (on_cpu(ctx) || (format.weights != DType::u4 && format.weights != DType::f8) ||
        !multiplies(ctx.device, format) || weight.rank() != 2 || !is_float(weight.dtype()) ||
        weight.is_sized_only())
      return;
    const int64_t outputs = weight.dim(0), depth = weight.dim(1);
    if (format.weights == DType::f8) {
      rounded_ = Tensor(DType::f8, weight.shape());
      scales_ = Tensor(DType::f32, {outputs});
      round_to_fp8(*ctx.team, weight, rounded_, scales_);
      matrix_ = {rounded_, scales_};
      return;
    }
    const Shape groups{outputs, (depth + format.group - 1) / format.group};
    rounded_ = Tensor(DType::u8, {outputs, (depth + 1) / 2});
    scales_ = Tensor(DType::bf16, groups);
    minima_ = Tensor(DType::bf16, groups);
    round_to_int4(*ctx.team, weight, format.group, {rounded_, scales_, minima_});
    matrix_ = {rounded_, scales_, minima_, depth};
  }
  WeightSource rows() const { return rows_of(matrix_); }

 private:
  StoredMatrix matrix_;
  Tensor rounded_, scales_, minima_;
};

// The kernel of a convolution in the form that it is packed of: floats that become 8 bits on a GPU are
// rounded by the CPU, for an output's scale is that of all its taps and phases.
class KernelForm {
 public:
  // axis: that of the outputs.
  KernelForm(Context& ctx, const StoredMatrix& kernel, int axis, const MatrixFormat& format)
      : kernel_(kernel) {
    check_weight(kernel, 3, 3, axis);
    const TensorView weight = kernel.weight;
    if (on_cpu(ctx) || format.weights != DType::i8 || !multiplies(ctx.device, format) ||
        !is_float(weight.dtype()) || weight.is_sized_only())
      return;
    integers_ = Tensor(DType::i8, weight.shape());
    scales_ = Tensor(DType::f32, {weight.dim(axis)});
    round_kernel_to_int8(*ctx.team, weight, axis, integers_, scales_);
    kernel_ = {integers_, scales_};
  }
  const StoredMatrix& matrix() const { return kernel_; }

 private:
  StoredMatrix kernel_;
  Tensor integers_, scales_;
};

PackedMatrix pack(Context& ctx, PackRequest request, MatrixFormat format, TensorView bias,
                  int64_t bias_repeats = 1) {
  if (!multiplies(ctx.device, format))
    fail(ErrorCode::unsupported, "matrix format: weights in ", name_of(format.weights), " times operands in ",
         name_of(format.operand),
         ", expected one of F32, BF16, I8 (on a CPU) and F16 (on a GPU) for both, or, on "
         "a GPU, I8 or F8_E4M3 times BF16 or F16; or U4 in groups of 32, 64 or 128 times I8 (on a CPU), BF16 "
         "or F16 (on "
         "a GPU)");
  const bool several = format.weights == DType::i8 && !on_cpu(ctx);
  if (is_quantised(format.weights) && !several && request.taps != 1)
    fail(ErrorCode::unsupported, "matrix format: weights in ", name_of(format.weights), " for ", request.taps,
         " taps, expected one tap, or I8 on a GPU");
  request.dtype = format.weights;
  request.operand = format.operand;
  request.group = format.group;
  check_stored_as(request);
  PackedMatrix packed;
  packed.format = format;
  packed.outputs = request.outputs;
  packed.taps = request.taps;
  packed.depth = request.depth;
  packed.is_pair = request.paired;
  if (!request.parts[0].data) {
    packed.storage = sized_storage(ctx, request);
    if (has_output_scales(format.weights))
      packed.scales = Tensor::sized(DType::f32, shape_of_scales(ctx, request), ctx.device);
    if (bias.rank() > 0) packed.bias = Tensor::sized(DType::f32, {request.outputs}, ctx.device);
    return packed;
  }
  if (has_output_scales(format.weights))
    packed.scales = Tensor(DType::f32, shape_of_scales(ctx, request), ctx.device);
  packed.storage =
      on_cpu(ctx) ? cpu::pack(ctx, request, packed.scales) : cuda::pack(ctx, request, packed.scales);
  packed.bias = resident(ctx, widen_bias(bias, request.outputs, bias_repeats));
  return packed;
}

}  // namespace

PackedMatrix pack_matrix(Context& ctx, const StoredMatrix& matrix, TensorView bias, MatrixFormat format) {
  check_weight(matrix, 2, 3);
  const PackedForm form(ctx, matrix, format);
  const WeightSource source = form.rows();
  const TensorView weight = matrix.weight;
  return pack(ctx,
              {.parts = {&source, 1},
               .outputs = weight.dim(0),
               .taps = weight.rank() == 3 ? weight.dim(1) : 1,
               .depth = matrix.depth()},
              format, bias);
}

PackedMatrix pack_stacked(Context& ctx, std::span<const StoredMatrix> matrices, TensorView bias,
                          MatrixFormat format) {
  CHECK(!matrices.empty());
  std::vector<PackedForm> forms;
  std::vector<WeightSource> parts;
  int64_t outputs = 0;
  const int64_t depth = matrices[0].depth();
  for (const StoredMatrix& matrix : matrices) {
    check_weight(matrix, 2, 2);
    CHECK(matrix.depth() == depth, "stacking ", matrix.weight.shape(), " on a depth of ", depth);
    parts.push_back(forms.emplace_back(ctx, matrix, format).rows());
    outputs += matrix.weight.dim(0);
  }
  return pack(ctx, {.parts = parts, .outputs = outputs, .depth = depth}, format, bias);
}

PackedMatrix pack_stacked(Context& ctx, std::span<const TensorView> weights, TensorView bias,
                          MatrixFormat format) {
  return pack_stacked(ctx, std::vector<StoredMatrix>(weights.begin(), weights.end()), bias, format);
}

PackedMatrix pack_gate_up(Context& ctx, const StoredMatrix& gate, const StoredMatrix& up,
                          MatrixFormat format) {
  check_weight(gate, 2, 2);
  check_weight(up, 2, 2);
  const Shape& shape = gate.weight.shape();
  CHECK(shape == up.weight.shape() && gate.depth() == up.depth(), "gate ", shape, ", up ", up.weight.shape());
  const PackedForm gate_form(ctx, gate, format), up_form(ctx, up, format);
  const std::array parts = {gate_form.rows(), up_form.rows()};
  return pack(ctx, {.parts = parts, .paired = true, .outputs = shape[0], .depth = gate.depth()}, format, {});
}

PackedMatrix pack_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, MatrixFormat format) {
  return pack_strided_conv1d(ctx, kernel, bias, 1, format);
}

PackedMatrix pack_strided_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, int64_t stride,
                                 MatrixFormat format) {
  const KernelForm form(ctx, kernel, 0, format);
  const TensorView weight = form.matrix().weight;
  const int64_t inputs = weight.dim(1), size = weight.dim(2);
  CHECK(stride > 0 && size % stride == 0, "kernel ", size, ", stride ", stride);
  // Output m sees samples (m + 1) * stride - kernel up to (m + 1) * stride - 1: tap j covers kernel positions
  // j * stride + phase, and k is (phase, channel).
  WeightSource source{.data = weight.data(),
                      .dtype = weight.dtype(),
                      .outputs = weight.dim(0),
                      .n_outer_stride = weight.stride(0),
                      .k_inner = inputs,
                      .k_outer_stride = 1,
                      .k_inner_stride = weight.stride(1),
                      .tap_stride = stride};
  add_scales(form.matrix(), source);
  return pack(
      ctx, {.parts = {&source, 1}, .outputs = weight.dim(0), .taps = size / stride, .depth = stride * inputs},
      format, bias);
}

PackedMatrix pack_transposed_conv1d(Context& ctx, const StoredMatrix& kernel, TensorView bias, int64_t stride,
                                    MatrixFormat format) {
  const KernelForm form(ctx, kernel, 1, format);
  const TensorView weight = form.matrix().weight;
  const int64_t channels = weight.dim(1), size = weight.dim(2);
  CHECK(stride > 0 && size % stride == 0, "kernel ", size, ", stride ", stride);
  // Output sample m * stride + phase sees input m - q through kernel position phase + q * stride. Taps run
  // from the oldest input (largest q) to the newest, and n is (phase, channel).
  WeightSource source{.data = weight.data(),
                      .dtype = weight.dtype(),
                      .outputs = stride * channels,
                      .start = size - stride,
                      .n_inner = channels,
                      .n_outer_stride = 1,
                      .n_inner_stride = weight.stride(1),
                      .k_outer_stride = weight.stride(0),
                      .tap_stride = -stride};
  add_scales(form.matrix(), source);
  return pack(
      ctx,
      {.parts = {&source, 1}, .outputs = stride * channels, .taps = size / stride, .depth = weight.dim(0)},
      format, bias, stride);
}

}  // namespace shoal::ops
