// The vector ops by definition, in double: the oracles of the fast ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/ref/matrix.h"

namespace shoal::ops::ref {

// One row each.
Values rms_norm(const Values& x, const Values& weight, double eps);
Values layer_norm(const Values& x, const Values& weight, const Values& bias, double eps);

double leaky_relu(double x, double slope);
// x + sin^2(alpha x) / alpha (kokoro/MODEL.md, Blocks); the snake of matrix.h divides by alpha + 1e-9.
double plain_snake(double x, double alpha);
// (1 + scale) (x - mean) / sqrt(var + eps) + shift of one utterance, x: [rows, channels], scales and shifts:
// [channels]; with the mean and biased variance of each channel (kokoro/MODEL.md, Blocks).
Values adain(const Values& x, const Values& scales, const Values& shifts, double eps);
// A transposed convolution of one utterance, x: [rows, channels] -> [2 * rows, channels]: a kernel of 3 taps
// a channel, stride 2, padding 1, output padding 1 (kokoro/MODEL.md, Blocks). weight: [3, channels], bias:
// [channels].
Values double_rows(const Values& x, const Values& weight, const Values& bias);

// (a, b) -> (a cos - b sin, b cos + a sin) of pairs; cos_sin interleaved likewise.
Values rotate_pairs(const Values& x, const Values& cos_sin);

// softmax(q . K / sqrt(dim)) V.   keys, values: [positions, dim]
Values attention(const Values& q, const Values& keys, const Values& values);
// Largest sum |q_d k_d| / sqrt(dim) over the keys: the scale of a score's rounding error.
double score_magnitude(const Values& q, const Values& keys);

// Ids that the top-p and top-k rule keeps, by rank: all entries sorted (logit descending, id ascending), rank
// 0 kept, and rank j while the weights of ranks 0 .. j sum to at most top_p of all (dual_ar/MODEL.md 5). -inf
// is never kept. top_k 0: no limit.
std::vector<int32_t> kept_by_sorting(std::span<const float> logits, const Values& weights, float top_p,
                                     int64_t top_k);

}  // namespace shoal::ops::ref
