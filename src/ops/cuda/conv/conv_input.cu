#include "ops/cuda/conv/conv_channels.cuh"
#include "ops/cuda/conv/conv_input.cuh"
#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfThread = 4;  // that share the snake's factors and whose loads are on their way together
constexpr int kHistoryChannels = 64;  // of a block, its only user: it may overwrite what it has read
constexpr int kHistoryRows = kThreads / (kHistoryChannels / kEight);

struct PrepareArguments {
  ConvSource source;
  bool vectors = false;  // has_vector_rows
  void* out = nullptr;   // null: only the histories
  bool ready = false;    // out has the new rows
  int width = 0;         // of out: channels and their padding
  int32_t* first_rows = nullptr;
  int history_blocks = 0, channel_blocks = 0;
};

// A history is of the snake that its convolution's inputs pass through: the next call reads it as one of
// them.
template <typename T>
using Snakes = EightSnakes<!std::is_same_v<T, float>>;

// Into row `row` of the prepared rows, whose width is a multiple of 8 where T has 16 bits.
template <typename T>
__device__ inline void store_prepared(const PrepareArguments& a, int64_t row, int c,
                                      const EightFloats& eight) {
  T* const to = static_cast<T*>(a.out) + row * a.width;
  if constexpr (std::is_same_v<T, float>) {
    store_eight(to, c, a.width, a.width % 4 == 0, eight);
  } else {
    *reinterpret_cast<uint4*>(to + c) = rounded_eight<T>(eight);
  }
}

// One sequence's history of 64 channels: copied to the prepared rows, then replaced by the newest inputs. Row
// j of the new history is row j + n of the old, or an input. Blocks go through it by rising row, so that they
// overwrite only rows that they have read.
template <typename T>
__device__ inline void move_history(const PrepareArguments& a) {
  const ConvSource& s = a.source;
  const int sequence = static_cast<int>(blockIdx.x) / a.channel_blocks;
  const int c = static_cast<int>(blockIdx.x) % a.channel_blocks * kHistoryChannels +
                static_cast<int>(threadIdx.x) % (kHistoryChannels / kEight) * kEight;
  const int64_t begin = s.begin_of(sequence), count = s.begin_of(sequence + 1) - begin;
  if (count <= 0) return;  // no rows to prepare, and its history stays
  const bool present = c < s.channels;
  float* const history = s.history_of(sequence);
  const int64_t out_row = begin + static_cast<int64_t>(sequence) * s.look_back;
  for (int first = 0; first < s.look_back; first += kHistoryRows) {
    const int row = first + static_cast<int>(threadIdx.x) / (kHistoryChannels / kEight);
    const bool mine = present && row < s.look_back;
    EightFloats old{}, next;
    if (mine) {
      old = load_eight(history + static_cast<int64_t>(row) * s.channels, c, s.channels, a.vectors);
      const int64_t from = row + count;
      if (from < s.look_back) {
        next = load_eight(history + from * s.channels, c, s.channels, a.vectors);
      } else if (a.ready) {
        next = widened_eight(static_cast<const T*>(a.out) + (out_row + from) * a.width + c);
      } else {
        next = load_eight(s.x + (begin + from - s.look_back) * s.channels, c, s.channels, a.vectors);
        if (s.alpha) next = Snakes<T>(s.alpha, c, s.channels, a.vectors)(next);
      }
    }
    __syncthreads();
    if (!mine) continue;
    store_eight(history + static_cast<int64_t>(row) * s.channels, c, s.channels, a.vectors, next);
    if (a.out) store_prepared<T>(a, out_row + row, c, old);
  }
}

// New rows: a thread takes eight channels of four rows.
template <typename T>
__device__ inline void prepare_new_rows(const PrepareArguments& a) {
  const ConvSource& s = a.source;
  const auto eights = static_cast<unsigned>((a.width + kEight - 1) / kEight);
  const unsigned item = (blockIdx.x - static_cast<unsigned>(a.history_blocks)) * kThreads + threadIdx.x;
  const int64_t row = static_cast<int64_t>(item / eights) * kRowsOfThread;
  const int c = static_cast<int>(item % eights) * kEight;
  int sequence = sequence_of(s, __shfl_sync(~0u, row, 0));
  if (row >= s.rows) return;
  EightFloats values[kRowsOfThread];
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i)
    if (row + i < s.rows) values[i] = load_eight(s.x + (row + i) * s.channels, c, s.channels, a.vectors);
  if (s.alpha) {
    const Snakes<T> snakes(s.alpha, c, s.channels, a.vectors);
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) values[i] = snakes(values[i]);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    if (row + i >= s.rows) break;
    sequence = next_sequence_of(s, sequence, row + i);
    const int64_t first = row + i + static_cast<int64_t>(sequence) * s.look_back;
    store_prepared<T>(a, first + s.look_back, c, values[i]);
    if (a.first_rows && c == 0) a.first_rows[row + i] = static_cast<int32_t>(first);
  }
}

// Of new rows that are ready: a thread says of one where its taps begin.
__device__ inline void find_first_rows(const PrepareArguments& a) {
  const int64_t row = int64_t{blockIdx.x - static_cast<unsigned>(a.history_blocks)} * kThreads + threadIdx.x;
  const int sequence = sequence_of(a.source, __shfl_sync(~0u, row, 0));
  if (row >= a.source.rows) return;
  const int own = next_sequence_of(a.source, sequence, row);
  a.first_rows[row] = static_cast<int32_t>(row + static_cast<int64_t>(own) * a.source.look_back);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) prepare_kernel(const __grid_constant__ PrepareArguments a) {
  wait_for_inputs();
  if (static_cast<int>(blockIdx.x) < a.history_blocks)
    move_history<T>(a);
  else if (a.ready)
    find_first_rows(a);
  else
    prepare_new_rows<T>(a);
}

PrepareArguments arguments_of(const ConvSource& source) {
  PrepareArguments a{.source = source, .vectors = has_vector_rows(source)};
  a.channel_blocks = static_cast<int>(blocks_for(source.channels, kHistoryChannels));
  a.history_blocks = source.look_back > 0 ? source.sequences * a.channel_blocks : 0;
  return a;
}

void launch_prepare(Context& ctx, const PrepareArguments& a, DType dtype) {
  const int64_t items = a.ready ? (a.first_rows ? a.source.rows : 0)
                        : a.out ? blocks_for(a.source.rows, kRowsOfThread) * blocks_for(a.width, kEight)
                                : 0;
  const int64_t blocks = a.history_blocks + blocks_for(items, kThreads);
  CHECK(items < int64_t{1} << 32 && blocks < int64_t{1} << 31, "a convolution of ", a.source.rows, " rows");
  if (blocks == 0) return;
  launch(ctx, "input of a convolution",
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kThreads)},
         with_float_type(dtype, [](auto type) { return prepare_kernel<decltype(type)>; }), a);
}

// Where the taps of each row begin, and the kernel. `prepared` has its rows' place.
void prepare(Context& ctx, PrepareArguments& a, int64_t dilation, PreparedRows& prepared) {
  a.out = prepared.x.data();
  prepared.taps.dilation = dilation;
  if (a.source.look_back > 0) {
    a.first_rows = ctx.workspace->alloc(DType::i32, {a.source.rows}).as<int32_t>();
    prepared.taps.first_rows = a.first_rows;
  }
  launch_prepare(ctx, a, prepared.x.dtype());
}

}  // namespace

ConvSource source_of(const ConvInput& input, int64_t look_back) {
  ConvSource source{.x = input.x.dtype() == DType::f32 ? input.x.as<float>() : nullptr,
                    .alpha = input.snake_alpha.empty() ? nullptr : input.snake_alpha.as<float>(),
                    .offsets = input.rows.offsets.as<int32_t>(),
                    .sequences = input.rows.rows.sequences(),
                    .rate = input.rows.rate,
                    .rows = input.rows.rows.rows(),
                    .channels = static_cast<int>(input.x.dim(1)),
                    .look_back = static_cast<int>(look_back)};
  if (look_back == 0) return source;
  source.history = input.history.pool.as<float>() + input.history.offset;
  source.slot_stride = input.history.pool.stride(0);
  source.slots = input.rows.slots.as<int32_t>();
  return source;
}

bool has_vector_rows(const ConvSource& source) {
  return source.channels % 4 == 0 && source.slot_stride % 4 == 0 && is_aligned(source.x) &&
         is_aligned(source.alpha) && is_aligned(source.history);
}

PreparedRows prepare_rows(Context& ctx, const ConvSource& source, int64_t dilation, DType dtype) {
  PrepareArguments a = arguments_of(source);
  PreparedRows prepared;
  a.width = dtype == DType::f32 ? source.channels : (source.channels + kEight - 1) / kEight * kEight;
  const int64_t rows = source.rows + int64_t{source.sequences} * source.look_back;
  prepared.x = ctx.workspace->alloc(dtype, {rows, a.width});
  prepare(ctx, a, dilation, prepared);
  return prepared;
}

PreparedRows adopt_rows(Context& ctx, const ConvSource& source, int64_t dilation, TensorView ready) {
  PrepareArguments a = arguments_of(source);
  a.width = source.channels;
  a.ready = true;
  PreparedRows prepared{.x = ready};
  prepare(ctx, a, dilation, prepared);
  return prepared;
}

void update_history(Context& ctx, const ConvSource& source, DType dtype) {
  if (!source.history) return;
  launch_prepare(ctx, arguments_of(source), dtype);
}

}  // namespace shoal::ops::cuda
