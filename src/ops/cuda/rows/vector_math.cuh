// Functions of f32 as the CPU computes them (cpu/simd/vector_math.h, cpu/sequence/sequence_math.h), operation
// by operation: files that include this are compiled with --fmad=false, so that a product and a sum are
// rounded apart unless fmaf says otherwise. Host code has them too, for tests.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cuda_runtime_api.h>

namespace shoal::ops::cuda {

// e^x for x <= 0; 0 below -87; NaN stays.
__host__ __device__ inline float exp_nonpositive(float x) {
  constexpr float kLeast = -87.0f, kMagic = 12582912.0f;
  const float clamped = kLeast > x ? kLeast : x;
  const float magic = fmaf(clamped, 0x1.715476p+0f, kMagic);
  const float n = magic - kMagic;
  const float r = fmaf(-n, -0x1.05c610p-29f, fmaf(-n, 0x1.62e430p-1f, clamped));
  float q = fmaf(r, 0x1.6db64cp-10f, 0x1.123ce0p-7f);
  q = fmaf(r, q, 0x1.55545cp-5f);
  q = fmaf(r, q, 0x1.55548cp-3f);
  q = fmaf(r, q, 0.5f);
  const float y = 1.0f + fmaf(r * r, q, r);
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(magic) + 127u) << 23);
  return x < kLeast ? 0.0f : y * power;
}

// c[0] + z c[1] + z^2 c[2] + ...
template <int kCount>
__host__ __device__ inline float polynomial(float z, const float (&c)[kCount]) {
  float sum = c[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) sum = fmaf(z, sum, c[i]);
  return sum;
}

__host__ __device__ inline float signed_like(float magnitude, float x) {
  return x < 0.0f ? 0.0f - magnitude : magnitude;
}

// The sigmoid of x, or its tanh: one exponential and one division either way, so that lanes of a warp that
// want the one and the other go together.
__host__ __device__ inline float sigmoid_or_tanh(float x, bool wants_tanh) {
  const float a = fabsf(x);
  const float e = exp_nonpositive(wants_tanh ? -2.0f * a : 0.0f - a);
  const float upper = wants_tanh ? 1.0f - e : x < 0.0f ? e : 1.0f;
  const float quotient = upper / (1.0f + e);
  if (!wants_tanh) return quotient;
  const float z = x * x;
  const float p =
      polynomial(z, {-0x1.55553ap-2f, 0x1.1107acp-3f, -0x1.b83a12p-5f, 0x1.51c5d0p-6f, -0x1.733f6ap-8f});
  return a < 0.625f ? fmaf(x * z, p, x) : signed_like(quotient, x);
}
__host__ __device__ inline float tanh_of(float x) { return sigmoid_or_tanh(x, true); }

// e^x; infinite from 87 on.
__host__ __device__ inline float exponential(float x) {
  const float e = exp_nonpositive(0.0f - fabsf(x));
  return 0.0f < x ? 1.0f / e : e;
}

// sin r for |r| <= pi/2 + 0.003.
__host__ __device__ inline float sine_of_quarter(float r) {
  const float z = r * r;
  const float q = polynomial(z, {-0x1.55554ep-3f, 0x1.110ef4p-7f, -0x1.9f70a0p-13f, 0x1.5d9590p-19f});
  return fmaf(r * z, q, r);
}

// cos r for |r| <= 1.
__host__ __device__ inline float cosine_of_unit(float r) {
  const float z = r * r;
  const float q = polynomial(z, {0x1.55553ap-5f, -0x1.6c011ap-10f, 0x1.96f3e4p-16f});
  return fmaf(z * z, q, fmaf(z, -0.5f, 1.0f));
}

__host__ __device__ inline float sine_of_large(float t) {
  return static_cast<float>(sin(static_cast<double>(t)));
}

// sin t of any t.
__host__ __device__ inline float sine_of(float t) {
  constexpr float kMagic = 12582912.0f, kMostReduced = 65536.0f;
  if (!(fabsf(t) <= kMostReduced)) return sine_of_large(t);
  const float n = fmaf(t, 0x1.45f306p-2f, kMagic) - kMagic;
  const float r = fmaf(-n, -0x1.777a5cp-24f, fmaf(-n, 0x1.921fb6p+1f, t));
  const float even = fmaf(n, 0.5f, kMagic) - kMagic;
  const float odd = fmaf(-even, 2.0f, n);  // -1, 0 or 1
  return sine_of_quarter(r) * fmaf(-(odd * odd), 2.0f, 1.0f);
}

// sin(2 pi x) for |x| <= 1/4.
__host__ __device__ inline float sine_of_turns(float x) {
  const float z = x * x;
  const float q = polynomial(z, {-0x1.4abbc8p+5f, 0x1.466948p+6f, -0x1.3256d4p+6f, 0x1.3e15eap+5f});
  return fmaf(x * z, q, x * 0x1.921fb6p+2f);
}

// A turn f in [0, 1] as sin(2 pi f) and cos(2 pi f).
__host__ __device__ inline float sine_of_turn(float f) {
  const float x = f - 0.5f, quarter = 0.25f;
  return signed_like(sine_of_turns(quarter - fabsf(fabsf(x) - quarter)), 0.0f - x);
}
__host__ __device__ inline float cosine_of_turn(float f) {
  return 0.0f - sine_of_turns(0.25f - fabsf(f - 0.5f));
}

// The angle of (x, y) in (-pi, pi], 0 for (0, 0); a y of -0 counts as 0.
__host__ __device__ inline float angle_of(float y, float x) {
  const float ax = fabsf(x), ay = fabsf(y);
  const float larger = ax > ay ? ax : ay, smaller = ax < ay ? ax : ay;
  const float a = smaller / (0.0f < larger ? larger : 1.0f);
  const float z = a * a;
  const float p =
      polynomial(z, {-0x1.555548p-2f, 0x1.999388p-3f, -0x1.242cbep-3f, 0x1.c0dd18p-4f, -0x1.588030p-4f,
                     0x1.da6dccp-5f, -0x1.fbc37ep-6f, 0x1.60359cp-7f, -0x1.c91afep-10f});
  const float atan = fmaf(a * z, p, a);
  const float upright = ax < ay ? 0x1.921fb6p+0f - atan : atan;
  const float half = x < 0.0f ? 0x1.921fb6p+1f - upright : upright;
  return signed_like(half, y);
}

}  // namespace shoal::ops::cuda
