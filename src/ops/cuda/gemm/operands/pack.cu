// Weight matrices on their way from a checkpoint to the layouts of matrix_layout.cuh: their stored bytes are
// copied to the device once, at the speed of the bus, and permuted and rounded there.
#include <algorithm>
#include <cstring>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/pack_source.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kPackThreads = 256;
constexpr int64_t kCopyGrain = 128 << 10;  // of one worker, through page-locked memory

__device__ inline void round_to(float value, __nv_bfloat16& to) { to = __float2bfloat16_rn(value); }
__device__ inline void round_to(float value, __half& to) { to = __float2half_rn(value); }

// A thread per eight inputs: 16 bytes of a tile. Inputs up to the end of the last tile of a tap are zeros.
template <typename T>
__global__ void __launch_bounds__(kPackThreads) pack_tiles_kernel(const PackArguments a) {
  wait_for_inputs();
  const int64_t eights = a.shape.tap_tiles() * (kTileInputs / 8);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPackThreads + threadIdx.x;
  const int64_t n = i / (a.shape.taps * eights), tap = i / eights % a.shape.taps, k = i % eights * 8;
  if (n >= a.from.outputs) return;
  __align__(16) T eight[8];
  for (int j = 0; j < 8; ++j)
    round_to(k + j < a.shape.depth ? source_value(a, n, tap, k + j) : 0.0f, eight[j]);
  T* const to = static_cast<T*>(a.to) + element_index(a.shape, a.part, a.first_output + n, tap, k);
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight);
}

// A thread per element.
__global__ void __launch_bounds__(kPackThreads) pack_f32_kernel(const PackArguments a) {
  wait_for_inputs();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPackThreads + threadIdx.x;
  const int64_t n = i % a.from.outputs, tap = i / a.from.outputs / a.shape.depth,
                k = i / a.from.outputs % a.shape.depth;
  if (tap >= a.shape.taps) return;
  static_cast<float*>(a.to)[f32_index(a.shape, a.part, a.first_output + n, tap, k)] =
      source_value(a, n, tap, k);
}

struct Range {
  int64_t first, last;  // elements
};

// The elements of its memory that a source reads are in this range.
Range range_of(const WeightSource& source, int64_t taps, int64_t depth) {
  Range range{source.output_offset(0), source.output_offset(0)}, inputs{0, 0};
  for (int64_t n = 1; n < source.outputs; ++n) {
    range.first = std::min(range.first, source.output_offset(n));
    range.last = std::max(range.last, source.output_offset(n));
  }
  for (int64_t k = 0; k < depth; ++k) {
    inputs.first = std::min(inputs.first, source.depth_offset(k));
    inputs.last = std::max(inputs.last, source.depth_offset(k));
  }
  const int64_t last_tap = (taps - 1) * source.tap_stride;
  return {range.first + inputs.first + std::min<int64_t>(0, last_tap),
          range.last + inputs.last + std::max<int64_t>(0, last_tap)};
}

// In pieces through page-locked memory: the team fills one piece while the one before is on the bus.
void copy_to_device(Context& ctx, const char* from, TensorView to) {
  StreamState& stream = state_of(ctx);
  for (int64_t begin = 0; begin < to.bytes(); begin += StreamState::kStageBytes) {
    const int64_t bytes = std::min(StreamState::kStageBytes, to.bytes() - begin);
    char* const staged = static_cast<char*>(stream.stage(bytes));
    ctx.team->parallel_for(bytes, kCopyGrain, [&](int64_t piece, int64_t end, int) {
      std::memcpy(staged + piece, from + begin + piece, static_cast<size_t>(end - piece));
    });
    check(cudaMemcpyAsync(static_cast<char*>(to.data()) + begin, staged, static_cast<size_t>(bytes),
                          cudaMemcpyHostToDevice, stream.stream()),
          "weights");
  }
}

void pack_part(Context& ctx, const PackRequest& request, const PackArguments& where, TensorView scales) {
  Workspace::Scope scope(*ctx.workspace);
  PackArguments arguments = where;
  // Two weights of 4 bits are one element.
  const int64_t stored_depth = where.from.group_scales ? (request.depth + 1) / 2 : request.depth;
  const Range range = range_of(where.from, request.taps, stored_depth);
  const int64_t element = size_of(where.from.dtype);
  const TensorView bytes = ctx.workspace->alloc(DType::u8, {(range.last - range.first + 1) * element});
  copy_to_device(ctx, static_cast<const char*>(where.from.data) + range.first * element, bytes);
  arguments.source = bytes.data();
  arguments.from.start -= range.first;
  const auto copied = [&](const auto* values, DType dtype, int64_t count) {
    const TensorView stored = ctx.workspace->alloc(dtype, {count});
    copy_to_device(ctx, reinterpret_cast<const char*>(values), stored);
    return static_cast<decltype(values)>(stored.data());
  };
  if (where.from.scales)
    arguments.from.scales = copied(where.from.scales, DType::f32, where.from.scale_count);
  if (where.from.group_scales) {
    const int64_t count = where.from.outputs * where.from.groups;
    arguments.from.group_scales = copied(where.from.group_scales, DType::bf16, count);
    arguments.from.minima = copied(where.from.minima, DType::bf16, count);
    return pack_int4(ctx, arguments, request.format());
  }
  if (where.from.dtype == DType::f8) return pack_fp8(ctx, arguments, request.operand, scales.as<float>());
  CHECK(request.dtype != DType::u4 && request.dtype != DType::f8, "only stored weights become ",
        name_of(request.dtype));
  CHECK(request.dtype != DType::i8 || where.from.scales || where.from.n_inner == 1,
        "phases that share a scale are rounded ahead");
  if (request.dtype == DType::i8) return pack_int8(ctx, arguments, request.operand, scales.as<float>());

  const bool tiles = request.dtype != DType::f32;
  const int64_t inputs = request.taps * (tiles ? where.shape.tap_tiles() * (kTileInputs / 8) : request.depth);
  const Grid grid{
      .blocks = dim3(static_cast<unsigned>(blocks_for(where.from.outputs * inputs, kPackThreads))),
      .threads = dim3(kPackThreads)};
  launch(ctx, "pack", grid,
         tiles ? with_operand_type(request.dtype, [](auto type) { return pack_tiles_kernel<decltype(type)>; })
               : pack_f32_kernel,
         arguments);
}

}  // namespace

Tensor pack(Context& ctx, const PackRequest& request, TensorView scales) {
  const MatrixShape shape{request.outputs, request.taps, request.depth, request.paired};
  const int64_t bytes =
      request.dtype == DType::f32 ? f32_bytes(shape) : form_of(request.format()).bytes(shape);
  Tensor packed(DType::u8, {bytes}, ctx.device);
  cuda::fill_zero(ctx, packed);  // outputs that pad the last tiles
  if (!scales.empty()) cuda::fill_zero(ctx, scales);
  int64_t part = 0, first_output = 0;
  for (const WeightSource& source : request.parts) {
    pack_part(ctx, request,
              {.from = source,
               .shape = shape,
               .part = part,
               .first_output = first_output,
               .to = packed.view().data()},
              scales);
    if (request.paired)
      ++part;
    else
      first_output += source.outputs;
  }
  // Kernels read weights before they wait for earlier work of the stream.
  cuda::synchronize(ctx);
  return packed;
}

}  // namespace shoal::ops::cuda
