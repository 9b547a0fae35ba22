// The CPU kernels of everything that is not a matrix product, chosen once per call by cpu_isa().
//
// Every kernel is one sequence of IEEE operations on 16 virtual lanes (vector16.h), so results are the same
// bits on every instruction set. Pointers need no alignment; n may be anything from 0 on.
#pragma once

#include <cstdint>

#include "ops/sampling_noise.h"

namespace shoal::ops {

// How a row of keys or values is stored.
enum class KvRow : uint8_t { f32, bf16, i8 };

// Keys and values of one kv head for at most kAttentionChunk consecutive positions, and the queries that
// attend to them. The result of a query does not depend on the other queries of the call.
struct AttentionChunk {
  // [kAttentionChunk] rows of head_dim elements, one per position; only those that a query sees are read.
  const void* const* keys;
  const void* const* values;
  // [kAttentionChunk] what an element of the position's row is multiplied by; null unless rows are i8.
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
  KvRow row;
  int head_dim;
  float scale;                  // multiplies the scores
  const float* const* queries;  // [query_count] rows of head_dim floats
  int query_count;
  const int* begin;  // [query_count] query i sees rows [begin[i], end[i]) of the chunk; begin < end
  const int* end;
  float* scratch;        // attention_scratch(head_dim, query_count) floats
  float* const* result;  // [query_count] partial results of attention_partial(head_dim) floats
};

constexpr int kAttentionChunk = 128;  // 64 KB of values at head_dim 128: they stay in L2
// A partial result: weighted sum of the values [head_dim], then the maximum score, then the sum of weights.
constexpr int64_t attention_partial(int64_t head_dim) { return head_dim + 2; }
constexpr int64_t attention_scratch(int64_t head_dim, int64_t queries) {
  const int64_t padded = (head_dim + 15) / 16 * 16;
  return padded * (32 + kAttentionChunk) + queries * kAttentionChunk;
}

// Logits and their weights, one behind the other: room for `count` rounded up to 16.
struct WeightedLogits {
  float* logits;
  float* weights;
  int64_t count;
};

struct Above {
  double weight;  // exact sum of the weights of the logits > pivot
  int64_t count, equal;
};

// The entries from which a token is sampled: blocks with values of at least `least`. At least one.
struct Race {
  const float* logits;  // whole blocks: what pads the last one is below `least`
  float least, max, temperature;
  const int32_t* blocks;  // [block_count] ascending, as from blocks_at_least
  int64_t block_count;
  NoiseStream noise;
  uint32_t first_block;  // of the noise: entry 0 uses that of id 4 * first_block
};

// Rows of one segment and what becomes of them: act((x - mean) * scale + shift), per channel.
struct NormedRows {
  const float* x;
  int64_t x_stride;  // floats
  int64_t rows, channels;
  const float *mean, *scale, *shift;  // [channels]
  const float *alpha, *inverse;       // [channels] of a snake, z + sin^2(alpha z) * inverse; null: none
  float slope;                        // for negative values, when there is no snake
  void* y;
  int64_t y_stride;  // elements
  bool bf16;         // of y, else f32
};

// Sums of a product on their way to memory: y = [y +] (sums + bias) * scale, each step rounded.
struct FinishedRows {
  const float* sums;
  int64_t sums_stride;  // floats
  int64_t rows, count;
  const float *bias, *scale;  // [count]; null: none
  bool accumulate;
  float* y;  // may be sums
  int64_t y_stride;
};

struct VectorKernels {
  // y = x + sin^2(alpha x) / (alpha + 1e-9); alpha x is rounded to f32 first, as the reference does. Error of
  // sin^2 below 1.5e-7 for any argument. y may be x.
  void (*snake)(const float* x, const float* alpha, float* y, int64_t n);
  void (*snake_bf16)(const float* x, const float* alpha, uint16_t* y, int64_t n);
  void (*round_bf16)(const float* x, uint16_t* y, int64_t n);  // to nearest even; denormals stay
  void (*widen_bf16)(const uint16_t* x, float* y, int64_t n);
  void (*swiglu)(const float* gate, const float* up, float* y, int64_t n);  // y = silu(gate) * up, to 2.1 ulp
  void (*gelu)(const float* x, float* y, int64_t n);                        // exact (erf) form, to 2e-7
  void (*gelu_tanh)(const float* x, float* y, int64_t n);  // x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3)))
  void (*exp_nonpositive)(const float* x, float* y, int64_t n);  // x <= 0; below -87 it is 0
  void (*add)(const float* x, float* y, int64_t n);              // y += x
  void (*divide)(float divisor, float* y, int64_t n);            // y /= divisor

  // One row each; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, float* y, int64_t n);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, float* y, int64_t n);
  void (*finish_rows)(const FinishedRows& rows);
  // y = x as integers times a scale, which is returned: the largest becomes 127, the others the nearest
  // integer. NaN if a value is not finite. n >= 1.
  float (*round_i8)(const float* x, int8_t* y, int64_t n);
  float (*sum_i8)(const int8_t* x, int64_t n);  // exact for n <= 2^16
  // Rotates the pairs (x[2j], x[2j+1]) by cos_sin[2j], cos_sin[2j+1]; n is even.
  void (*rotate_pairs)(const float* cos_sin, float* x, int64_t n);

  // Per channel the mean of a block of rows and the sum of squared deviations from it.
  void (*channel_moments)(const float* x, int64_t x_stride, int64_t rows, int64_t channels, float* mean,
                          float* squares);
  void (*norm_rows)(const NormedRows& rows);
  // y = leaky_relu(factor * (terms[0] + terms[1] + ..)) of 1 to 3 terms; y may be one of them.
  void (*leaky_sum)(const float* const* terms, int count, float factor, float slope, float* y, int64_t n);
  void (*leaky_sum_bf16)(const float* const* terms, int count, float factor, float slope, uint16_t* y,
                         int64_t n);
  // even = w[1] x + bias, odd = w[2] x + w[0] next + bias, w = weight [3, n]; next null: zeros.
  void (*double_row)(const float* x, const float* next, const float* weight, const float* bias, float* even,
                     float* odd, int64_t n);

  // result[i] = the chunk's own softmax sums of query i.
  void (*attention_chunk)(const AttentionChunk& chunk);
  // sum = sum and part together: both partial results.
  void (*attention_merge)(const float* part, float* sum, int head_dim);
  // out = weighted sum / sum of weights.
  void (*attention_finish)(const float* sum, float* out, int head_dim);

  // The largest value; sets *has_nan when there is a NaN (then the value is meaningless). n >= 1.
  float (*max)(const float* x, int64_t n, bool* has_nan);
  // weights[i] = exp(x[i] - max) rounded to a multiple of 2^-35; returns their sum, which is exact for
  // n <= 2^18 and so does not depend on the order of summation.
  double (*softmax_weights)(const float* x, float max, float* weights, int64_t n);
  // The sum of weights above the pivot, and the number of values equal to it.
  Above (*above)(const WeightedLogits& entries, float pivot);
  // Moves the entries low < logit < high, in order, to `within`, which may be `entries`, and sets its count;
  // returns the sum of their weights.
  double (*narrow)(const WeightedLogits& entries, float low, float high, WeightedLogits* within);
  // Writes the blocks of four entries, 4 b .. 4 b + 3, that hold some x >= least, ascending; returns how
  // many.
  int64_t (*blocks_at_least)(const float* x, float least, int32_t* blocks, int64_t n);
  // The entry that wins: the largest exp((logit - max) / temperature) / noise, the first one on ties.
  int64_t (*race)(const Race& race);

  // codes[row] = index of the largest dot product x[row] . directions[entry]; the first one on exact ties.
  // x: rows of x_stride floats; directions: [entries, dim] dense; entries <= 2^24.
  void (*nearest_codes)(const float* x, int64_t x_stride, int64_t rows, const float* directions,
                        int64_t entries, int64_t dim, int32_t* codes);
};

const VectorKernels& vector_kernels();

namespace cpu {
// The table of each instruction set, in its own translation unit.
const VectorKernels& vector_kernels_portable();
const VectorKernels& vector_kernels_avx2();
const VectorKernels& vector_kernels_avx512();
}  // namespace cpu

}  // namespace shoal::ops
