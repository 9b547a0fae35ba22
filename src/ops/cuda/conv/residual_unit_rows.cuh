// How rows of a residual unit get through the first snake into shared memory, in 16 bits.
#pragma once

#include "ops/cuda/conv/residual_unit_arguments.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/snake.cuh"

namespace shoal::ops::cuda {

// Of four channels.
struct FourSnakes {
  float4 alpha, inverse;

  __device__ float4 operator()(const float4& x) const {
    return {near_snake(x.x, alpha.x, inverse.x), near_snake(x.y, alpha.y, inverse.y),
            near_snake(x.z, alpha.z, inverse.z), near_snake(x.w, alpha.w, inverse.w)};
  }
};

// Brings rows by kThreads threads: one has four channels (a quad) of every kTogether-th row. Sizes: of the
// kernel, which says where a row lies: kRows of kAllChannels in a piece, rows kRowBytes apart behind those
// that are looked back at, and a quad at column(quad) of each.
template <typename T, typename Sizes, int kThreads, int kBatch>
class UnitRows {
 public:
  using Pieces = UnitPieces<Sizes::kRows>;
  static constexpr int kChannels = Sizes::kAllChannels;
  static constexpr int kQuads = kChannels / 4;
  static constexpr int kTogether = kThreads / kQuads;  // rows that all threads bring
  static_assert(kTogether * kQuads == kThreads);
  static constexpr int kBatches = Sizes::kRows / (kTogether * kBatch);  // of the rows of a piece
  static_assert(kBatches * kTogether * kBatch == Sizes::kRows);
  static constexpr int kOldBatch = kBatch / 2;
  using Batch = float4[kBatch];  // rows of a thread that are on their way together

  // The thread's channels of a piece's first row, and the last row that the sequence has.
  struct Place {
    const float* x;
    int last;
  };

  __device__ static int quad_of(int thread) { return thread % kQuads; }

  // thread: of those that bring rows.  snakes: of its quad.
  __device__ UnitRows(const UnitArguments& a, int thread, const FourSnakes& snakes)
      : source_(a.source),
        vectors_(a.vectors),
        quad_(quad_of(thread)),
        row_(thread / kQuads),
        snakes_(snakes) {}

  __device__ bool leads() const { return row_ == 0 && quad_ == 0; }
  __device__ Place place_of(const Pieces& piece) const {
    return {source_.x + (piece.begin() + piece.first()) * kChannels + 4 * quad_, piece.rows() - 1};
  }
  // The thread's channels of a buffer of rows.
  __device__ char* column(char* buffer) const { return buffer + Sizes::column(quad_); }

  __device__ void load(const Place& place, int batch, Batch& values) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) values[i] = load_row(place, row_ + (batch * kBatch + i) * kTogether);
  }
  // A piece's rows, of which the first batch is in values, -> its buffer; while rows pass through the snake,
  // those of the next batch are on their way.
  __device__ void bring(const Place& place, Batch& values, char* column) const {
    store(values, bring_but_last(place, values, column));
  }
  // The same with the next piece's first batch on its way at last, if there is one.
  __device__ void bring(const Place& place, const Pieces& next, Batch& values, char* column) const {
    char* to = bring_but_last(place, values, column);
    if (next.has_piece())
      exchange(place_of(next), 0, values, to);
    else
      store(values, to);
  }

  // What a piece looks back at, that of the piece before or the history and the rows of the sequence before.
  // In one buffer: look-backs are shorter than pieces, and the threads must bring the piece's rows only after
  // all have copied, but where one has whole columns.
  __device__ void copy_look_back(const char* from, char* to) const {
    for (int m = row_; m < source_.look_back; m += kTogether)
      *reinterpret_cast<uint2*>(to + m * Sizes::kRowBytes) =
          *reinterpret_cast<const uint2*>(from + (Sizes::kRows + m) * Sizes::kRowBytes);
  }
  __device__ void bring_look_back(const Pieces& piece, char* to) const {
    const float* const history = source_.history_of(piece.sequence()) + 4 * quad_;
    const Place place = place_of(piece);
    const int inside = source_.look_back - piece.first();  // from here on, rows of the sequence
#pragma unroll 1
    for (int first = row_; first < source_.look_back; first += kOldBatch * kTogether) {
      float4 old[kOldBatch];
#pragma unroll
      for (int i = 0; i < kOldBatch; ++i) {
        const int m = min(first + i * kTogether, source_.look_back - 1);
        if (m >= inside)
          old[i] = load_row(place, m - source_.look_back);
        else if (vectors_)
          old[i] = four_at(history + (piece.first() + m) * kChannels);
        else
          old[i] = singles_at(history + (piece.first() + m) * kChannels);
      }
#pragma unroll
      for (int i = 0; i < kOldBatch; ++i) {
        const int m = first + i * kTogether;
        if (m < source_.look_back)
          *reinterpret_cast<uint2*>(to + m * Sizes::kRowBytes) =
              rounded_four(m >= inside ? snakes_(old[i]) : old[i]);
      }
    }
  }

 private:
  __device__ char* bring_but_last(const Place& place, Batch& values, char* column) const {
    char* to = column + (source_.look_back + row_) * Sizes::kRowBytes;
#pragma unroll 1
    for (int batch = 1; batch < kBatches; ++batch) exchange(place, batch, values, to);
    return to;
  }
  // The rows in values -> to, which moves on; a batch of others takes their place.
  __device__ void exchange(const Place& place, int batch, Batch& values, char*& to) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i, to += kTogether * Sizes::kRowBytes) {
      const uint2 rounded = rounded_four(snakes_(values[i]));
      values[i] = load_row(place, row_ + (batch * kBatch + i) * kTogether);
      *reinterpret_cast<uint2*>(to) = rounded;
      asm volatile("" ::: "memory");  // one row after the other: more at a time take more registers
    }
  }
  __device__ void store(const Batch& values, char* to) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      *reinterpret_cast<uint2*>(to + i * kTogether * Sizes::kRowBytes) = rounded_four(snakes_(values[i]));
  }

  __device__ static float4 four_at(const float* from) { return *reinterpret_cast<const float4*>(from); }
  __device__ static float4 singles_at(const float* from) { return {from[0], from[1], from[2], from[3]}; }
  // Rows behind the sequence's last are loaded as that one: nobody stores what becomes of them.
  __device__ static float4 load_row(const Place& place, int row) {
    return four_at(place.x + min(row, place.last) * kChannels);
  }
  __device__ static uint2 rounded_four(const float4& x) {
    struct alignas(8) {
      T v[4];
    } four = {narrowed_value<T>(x.x), narrowed_value<T>(x.y), narrowed_value<T>(x.z), narrowed_value<T>(x.w)};
    return *reinterpret_cast<const uint2*>(&four);
  }

  const ConvSource& source_;
  const bool vectors_;
  const int quad_, row_;
  const FourSnakes snakes_;
};

}  // namespace shoal::ops::cuda
