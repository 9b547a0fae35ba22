// A codec's last convolution: 7 taps of f32 rows to one output each.
//
// Bound by memory: every input is read once and passes through its snake once, on its way into shared memory.
// There four threads share four rows, each with a quarter of the channels, and a row of inputs serves up to
// four outputs.
#include "ops/cuda/conv/conv_kernels.cuh"
#include "ops/cuda/conv/conv_pieces.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kTaps = 7, kLookBack = kTaps - 1;
constexpr int kThreads = 128, kOutputRows = kThreads;  // of a block
constexpr int kInputRows = kOutputRows + kLookBack;
constexpr int kRowsOfThread = 4, kQuarters = 4;
constexpr int kLoadsTogether = 6;
constexpr int kMostChannels = 256;

struct OneOutputArguments {
  ConvSource source;
  const float* weight;  // [taps, channels], column 0 of kF32Columns
  ProductEpilogue epilogue;
  bool vectors;  // rows of x and of the histories are 16-byte aligned
};

// The position of 16 bytes of an input row in shared memory, in units of 16 bytes. The groups of four rows
// alternate between the halves of the banks, so that the eight lanes of two groups have no conflicts.
__device__ inline int place_of(int row, int chunk, int chunks) {
  return row * chunks + (chunk ^ (row / 4 % 2 * 4));
}

struct SharedRows {
  float4 *rows, *weight, *alpha, *inverse;

  __device__ SharedRows(float4* shared, int chunks)
      : rows(shared),
        weight(rows + kInputRows * chunks),
        alpha(weight + kTaps * chunks),
        inverse(alpha + chunks) {}
  static int64_t bytes(int64_t channels) { return (kInputRows + kTaps + 2) * channels * 4; }
};

__device__ inline void load_factors(const OneOutputArguments& a, const SharedRows& shared) {
  const int channels = a.source.channels;
  float* const weight = reinterpret_cast<float*>(shared.weight);
  for (int i = static_cast<int>(threadIdx.x); i < kTaps * channels; i += kThreads)
    weight[i] = __ldg(a.weight + static_cast<int64_t>(i) * kF32Columns);
  if (!a.source.alpha) return;
  for (int i = static_cast<int>(threadIdx.x); i < channels; i += kThreads) {
    const float alpha = __ldg(a.source.alpha + i);
    reinterpret_cast<float*>(shared.alpha)[i] = alpha;
    reinterpret_cast<float*>(shared.inverse)[i] = snake_inverse(alpha);
  }
}

__device__ inline float4 snake_four(const float4& x, const float4& alpha, const float4& inverse) {
  return make_float4(snake_value(x.x, alpha.x, inverse.x), snake_value(x.y, alpha.y, inverse.y),
                     snake_value(x.z, alpha.z, inverse.z), snake_value(x.w, alpha.w, inverse.w));
}

__device__ inline float4 load_four(const float* from, bool vectors) {
  return vectors ? *reinterpret_cast<const float4*>(from) : make_float4(from[0], from[1], from[2], from[3]);
}

// Row m of the block's inputs is row first + m - kLookBack of the sequence; those before it are its
// history's.
__device__ inline void load_rows(const OneOutputArguments& a, const PieceRows& rows, const SharedRows& shared,
                                 int chunks) {
  const ConvSource& source = a.source;
  const float* const x = source.x + source.begin_of(rows.sequence) * source.channels;
  const float* const history = source.history_of(rows.sequence);
  const unsigned reciprocal = ~0u / static_cast<unsigned>(chunks) + 1;  // exact for items below 2^16
  const int items = kInputRows * chunks;
  for (int first = static_cast<int>(threadIdx.x); first < items; first += kLoadsTogether * kThreads) {
    float4 values[kLoadsTogether];
#pragma unroll
    for (int i = 0; i < kLoadsTogether; ++i) {
      const int item = first + i * kThreads;
      const int row = static_cast<int>(__umulhi(static_cast<unsigned>(item), reciprocal));
      const int chunk = item - row * chunks;
      const int64_t at = rows.first + row - kLookBack;
      values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (item >= items || at >= rows.count) continue;
      const float* const from =
          at < 0 ? history + (at + kLookBack) * source.channels : x + at * source.channels;
      values[i] = load_four(from + chunk * 4, a.vectors);
    }
#pragma unroll
    for (int i = 0; i < kLoadsTogether; ++i) {
      const int item = first + i * kThreads;
      if (item >= items) break;
      const int row = static_cast<int>(__umulhi(static_cast<unsigned>(item), reciprocal));
      const int chunk = item - row * chunks;
      if (source.alpha && rows.first + row >= kLookBack)
        values[i] = snake_four(values[i], shared.alpha[chunk], shared.inverse[chunk]);
      shared.rows[place_of(row, chunk, chunks)] = values[i];
    }
  }
}

__device__ inline void multiply_four(float& sum, const float4& x, const float4& w) {
  sum = __fmaf_rn(x.x, w.x, sum);
  sum = __fmaf_rn(x.y, w.y, sum);
  sum = __fmaf_rn(x.z, w.z, sum);
  sum = __fmaf_rn(x.w, w.w, sum);
}

// Order: within a tap a quarter's channels one after the other, the quarters as (0 + 1) + (2 + 3), then the
// taps one after the other.
__global__ void __launch_bounds__(kThreads) one_output_kernel(const __grid_constant__ OneOutputArguments a) {
  extern __shared__ float4 memory[];
  const int chunks = a.source.channels / 4;
  const SharedRows shared(memory, chunks);
  load_factors(a, shared);
  wait_for_inputs();
  const PieceRows rows = rows_of_piece(a.source, static_cast<int>(blockIdx.x), kOutputRows);
  if (rows.count == 0) return;
  __syncthreads();  // the factors are there
  load_rows(a, rows, shared, chunks);
  __syncthreads();

  const int quarter = static_cast<int>(threadIdx.x) % kQuarters;
  const int row = static_cast<int>(threadIdx.x) / kQuarters * kRowsOfThread;
  float sums[kRowsOfThread][kTaps] = {};
  for (int chunk = quarter; chunk < chunks; chunk += kQuarters) {
    float4 w[kTaps];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) w[tap] = shared.weight[tap * chunks + chunk];
#pragma unroll
    for (int m = 0; m < kRowsOfThread + kLookBack; ++m) {
      const float4 x = shared.rows[place_of(row + m, chunk, chunks)];
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i)
        if (m - i >= 0 && m - i < kTaps) multiply_four(sums[i][m - i], x, w[m - i]);
    }
  }
  // Lane q of the four ends up with row q: of two lanes each keeps the half of the rows that its bit names.
  float total = 0.0f;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    const bool odd = quarter % 2, high = quarter / 2;
    const float low0 = odd ? sums[1][tap] : sums[0][tap], away0 = odd ? sums[0][tap] : sums[1][tap];
    const float low1 = odd ? sums[3][tap] : sums[2][tap], away1 = odd ? sums[2][tap] : sums[3][tap];
    const float pair0 = __fadd_rn(low0, __shfl_xor_sync(~0u, away0, 1));
    const float pair1 = __fadd_rn(low1, __shfl_xor_sync(~0u, away1, 1));
    const float mine = high ? pair1 : pair0, away = high ? pair0 : pair1;
    total = __fadd_rn(total, __fadd_rn(mine, __shfl_xor_sync(~0u, away, 2)));
  }
  const int64_t at = rows.first + row + quarter;
  if (at < rows.count) store_product(a.epilogue, a.source.begin_of(rows.sequence) + at, 0, total);
}

}  // namespace

bool has_one_output(const PackedMatrix& weight, const ConvSource& source) {
  return weight.format == DType::f32 && weight.outputs == 1 && weight.taps == kTaps &&
         source.look_back == kLookBack && source.channels % 32 == 0 && source.channels <= kMostChannels;
}

void convolve_to_one_output(Context& ctx, const ConvSource& source, const PackedMatrix& weight,
                            const ProductEpilogue& epilogue) {
  const OneOutputArguments arguments{.source = source,
                                     .weight = static_cast<const float*>(weight.storage.view().data()),
                                     .epilogue = epilogue,
                                     .vectors = has_vector_rows(source)};
  launch(ctx, "convolution to one output",
         {.blocks = dim3(static_cast<unsigned>(most_pieces(source, kOutputRows))),
          .threads = dim3(kThreads),
          .shared_bytes = static_cast<size_t>(SharedRows::bytes(source.channels))},
         one_output_kernel, arguments);
  update_history(ctx, source, DType::f32);
}

}  // namespace shoal::ops::cuda
