// What stands in device memory for a row of a draw, as its threads see it.
#pragma once

#include "ops/cuda/sampling/draw_team.cuh"

namespace shoal::ops::cuda {

// A call of draw_tokens (codebook 0) or of draw_codes.
struct DrawCall {
  const float* logits;
  int64_t stride;
  int32_t vocabulary;
  const DrawRow* rows;
  TokenHead head;
  int32_t codebook;
  const int32_t* codes;  // [rows, codebooks, .]: those to penalise; or null
  int64_t codes_stride, codebook_stride;
  int32_t most_codes;
  int32_t* frames;
  int64_t columns;

  __device__ bool draws_tokens() const { return codebook == 0; }
  // The last row of a semantic head stands for the end.
  __device__ int32_t end_entry() const { return head.semantic ? vocabulary - 1 : head.im_end; }
  __device__ bool is_semantic(int32_t token) const {
    return token >= head.semantic_begin && token <= head.semantic_end;
  }
  __device__ int32_t token_of(int32_t entry) const {
    if (!head.semantic) return entry;
    return entry == end_entry() ? head.im_end : head.semantic_begin + entry;
  }
  // -1: the head has no row for it.
  __device__ int32_t entry_of(int32_t token) const {
    if (!head.semantic) return token < vocabulary ? token : -1;
    if (token == head.im_end) return end_entry();
    return is_semantic(token) ? token - head.semantic_begin : -1;
  }
};

// -inf beyond the end.
__device__ inline void read_quad(const DrawCall& call, int64_t row, int32_t quad, float (&x)[4]) {
  const float* const logits = call.logits + row * call.stride + int64_t{4} * quad;
  if (4 * quad + 4 <= call.vocabulary && reinterpret_cast<uintptr_t>(logits) % sizeof(float4) == 0) {
    const float4 four = *reinterpret_cast<const float4*>(logits);
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
  } else {
    for (int i = 0; i < 4; ++i) x[i] = 4 * quad + i < call.vocabulary ? logits[i] : kNegativeInfinity;
  }
}

// Settings, penalties and the range of one row. Every warp holds them, so that none waits for another.
class RowRules {
 public:
  __device__ RowRules(const DrawCall& call, int64_t row, uint32_t& mark)
      : end_(call.vocabulary), mark_(mark) {
    const DrawRow& given = call.rows[row];
    settings_ = {{given.seed, given.frame, static_cast<uint32_t>(call.codebook)},
                 given.temperature,
                 given.top_p,
                 given.top_k};
    if (call.draws_tokens() && given.restricted != 0) {
      begin_ = call.entry_of(call.head.semantic_begin);
      end_ = call.entry_of(call.head.semantic_end) + 1;
      extra_ = call.entry_of(call.head.im_end);
    }
    read_penalised(call, given, row);
  }

  __device__ const DrawSettings& settings() const { return settings_; }

  // Makes of the quad of each lane of a warp, the first one's being `first`, what is drawn from: all lanes
  // must take part. -inf where nothing may be drawn.
  __device__ void settle(int32_t first, float (&x)[4]) const {
    for (int i = 0; i < 4; ++i)
      if (!is_allowed(4 * (first + lane_index()) + i)) x[i] = kNegativeInfinity;
    if (any_penalised_) penalise(first, x);
  }

 private:
  __device__ bool is_allowed(int32_t entry) const {
    return (entry >= begin_ && entry < end_) || entry == extra_;
  }

  __device__ void read_penalised(const DrawCall& call, const DrawRow& given, int64_t row) {
    static_assert(kMostPenalised <= kWarp, "a lane for each");
    const int lane = lane_index();
    if (call.draws_tokens()) {
      if (lane < given.penalised_tokens && lane < kMostPenalised)
        penalised_ = call.entry_of(given.tokens[lane]);
    } else if (lane < given.penalised_codes && lane < call.most_codes) {
      penalised_ = call.codes[row * call.codes_stride + call.codebook * call.codebook_stride + lane];
    }
    penalty_ = given.repetition_penalty;
    any_penalised_ = __any_sync(kWholeWarp, penalised_ >= 0 && penalty_ != 1.0f);
  }

  // Each lane knows one penalised entry and marks it in the word of the lane that holds it: duplicates mark
  // the same bit.
  __device__ void penalise(int32_t first, float (&x)[4]) const {
    const int32_t holder = penalised_ >= 0 ? penalised_ / 4 - first : -1;
    const bool is_here = holder >= 0 && holder < kWarp;
    if (!__any_sync(kWholeWarp, is_here)) return;
    mark_ = 0;
    __syncwarp();
    if (is_here) atomicOr(&mark_ + holder - lane_index(), 1u << penalised_ % 4);
    __syncwarp();
    const uint32_t marked = mark_;
    __syncwarp();  // before the next quads' marks
    for (int i = 0; i < 4; ++i)
      if ((marked >> i & 1u) != 0) x[i] = x[i] < 0 ? x[i] * penalty_ : x[i] / penalty_;
  }

  int32_t begin_ = 0, end_, extra_ = -1;
  uint32_t& mark_;  // this lane's of the block's marks, one per thread
  DrawSettings settings_;
  int32_t penalised_ = -1;
  float penalty_ = 1;
  bool any_penalised_ = false;
};

// Noise when it is asked for.
struct NoiseInTime {
  __device__ QuadNoise of_quad(const NoiseStream& stream, int, int32_t quad) const {
    return noise_of_quad(stream, quad);
  }
};

// The noise of one stream for what HeldEntries holds, before that is there; of others when it is asked for.
template <int kQuads>
class NoiseAhead {
 public:
  __device__ explicit NoiseAhead(const NoiseStream& stream) : stream_(stream) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      held_[i] = noise_of_quad(stream, static_cast<int32_t>(threadIdx.x + i * blockDim.x));
  }
  __device__ QuadNoise of_quad(const NoiseStream& stream, int i, int32_t quad) const {
    return stream == stream_ ? held_[i] : noise_of_quad(stream, quad);
  }

 private:
  NoiseStream stream_;
  QuadNoise held_[kQuads];
};

// The quads of a row that a block holds in its registers, from quad `first` on: quad i of a thread is i
// blocks away. What is read is on its way while the rules are.
template <int kQuads, typename Noise = NoiseInTime>
class HeldEntries {
 public:
  __device__ HeldEntries(const DrawCall& call, int64_t row, int32_t first, const Noise& noise = {})
      : first_(first + static_cast<int32_t>(threadIdx.x)), noise_(noise) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) read_quad(call, row, quad(i), x_[i]);
  }
  __device__ void settle(const RowRules& rules) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) rules.settle(quad(i) - lane_index(), x_[i]);
  }
  template <typename Body>
  __device__ void each(Body body) const {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      body(quad(i), x_[i], [&](const NoiseStream& stream) { return noise_.of_quad(stream, i, quad(i)); });
  }

 private:
  __device__ int32_t quad(int i) const { return first_ + i * static_cast<int32_t>(blockDim.x); }

  int32_t first_;
  float x_[kQuads][4];
  Noise noise_;
};

template <typename Entries>
__device__ uint32_t largest_key(const Entries& entries) {
  uint32_t key = 0;
  entries.each([&](int32_t, const float(&x)[4], const auto&) {
    for (int i = 0; i < 4; ++i) key = max(key, ordered(x[i]));
  });
  return key;
}

// A semantic token that is among the recent ones.
__device__ inline bool is_redrawn(const DrawCall& call, int64_t row, int32_t entry) {
  static_assert(kMostRecent <= kWarp, "a lane for each");
  if (!call.draws_tokens()) return false;
  const int32_t token = call.token_of(entry);
  if (!call.is_semantic(token)) return false;
  const DrawRow& given = call.rows[row];
  const int lane = lane_index();
  const bool same = lane < given.recent && lane < kMostRecent && given.recent_tokens[lane] == token;
  return __any_sync(kWholeWarp, same);
}

// The draw and, where it must be, the redraw. leader: as in draw_entry. The entry, or kNoEntry.
template <typename Entries>
__device__ int32_t draw_row(const DrawCall& call, int64_t row, BlockTeam& team, const Entries& entries,
                            const DrawSettings& settings, const Leader& leader, const RowState& state) {
  return draw_entry(team, entries, settings, leader, state, [&](int32_t entry, DrawSettings& anew) {
    if (!is_redrawn(call, row, entry)) return false;
    anew.noise.codebook = kRedrawNumber;
    anew.temperature = kRedrawTemperature;
    anew.top_p = kRedrawTopP;
    return true;
  });
}

// By one thread.
__device__ inline void write_drawn(const DrawCall& call, int64_t row, int32_t entry) {
  const bool drawn = entry != kNoEntry;
  int32_t* const frame = call.frames + row * call.columns;
  if (!call.draws_tokens()) {
    frame[1 + call.codebook] = drawn ? entry : -1;
    return;
  }
  const int32_t token = drawn ? call.token_of(entry) : -1;
  frame[0] = token;
  const int64_t code = int64_t{token} - call.head.semantic_begin;
  frame[1] = static_cast<int32_t>(max(int64_t{0}, min(code, int64_t{call.head.codebook_size} - 1)));
}

}  // namespace shoal::ops::cuda
