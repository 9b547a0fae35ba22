// snake(x, a) = x + sin^2(a x) / (a + 1e-9) in f32, the same bits wherever it is fused into something.
#pragma once

#include <cuda_runtime.h>

namespace shoal::ops::cuda {

// sin^2 has the period pi, so that a x is reduced to [-pi/2, pi/2] by multiples of pi (in two parts: exact as
// long as the multiple fits into 22 bits, beyond which a x itself has no phase left). There x + x^3 (c0 + c1
// x^2 + ..) is within 2^-27 of the sine, relative (minimax, our own Remez run).
__device__ inline float snake_value(float x, float alpha, float inverse) {
  const float angle = __fmul_rn(alpha, x);
  // To the nearest whole number, by adding 1.5 * 2^23 and taking it away: rintf has a slow unit of its own.
  const float turns = __fadd_rn(__fmaf_rn(angle, 0.318309873f, 12582912.0f), -12582912.0f);
  float r = __fmaf_rn(-turns, -8.74227766e-8f, __fmaf_rn(-turns, 3.14159274f, angle));
  r = fminf(fmaxf(r, -1.5707964f), 1.5707964f);  // of a huge angle: still a sine
  const float square = __fmul_rn(r, r);
  float p = __fmaf_rn(square, 2.60578054e-6f, -1.98096022e-4f);
  p = __fmaf_rn(square, p, 8.33306648e-3f);
  p = __fmaf_rn(square, p, -1.66666597e-1f);
  const float sine = __fmaf_rn(__fmul_rn(r, square), p, r);
  return __fmaf_rn(__fmul_rn(sine, sine), inverse, x);
}

// For what is rounded to 16 bits next, which needs no better sine than the special function unit has: 2^-20.5
// off where the angle is within a turn, beyond it about what the rounding of the angle itself does.
__device__ inline float near_snake(float x, float alpha, float inverse) {
  const float sine = __sinf(__fmul_rn(alpha, x));
  return __fmaf_rn(__fmul_rn(sine, sine), inverse, x);
}

// What snake_value multiplies by.
__device__ inline float snake_inverse(float alpha) { return __frcp_rn(__fadd_rn(alpha, 1e-9f)); }

}  // namespace shoal::ops::cuda
