// tanh, sines and arc tangents on 16 lanes: the same sequence of IEEE operations on every instruction set.
// Coefficients: minimax fits (Remez) in multiple precision, rounded to f32.
#pragma once

#include "ops/cpu/sequence/sequence_kernels.h"
#include "ops/cpu/simd/vector_math.h"

namespace shoal::ops::cpu {

// c[0] + z c[1] + z^2 c[2] + ...
template <typename V, int kCount>
V polynomial(V z, const float (&c)[kCount]) {
  V sum = V::all(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) sum = V::fma(z, sum, V::all(c[i]));
  return sum;
}

// magnitude with the sign of x; +0 and -0 leave it as it is.
template <typename V>
V signed_like(V magnitude, V x) {
  return V::select(V::less(x, V::zero()), V::zero() - magnitude, magnitude);
}

template <typename V>
V sigmoid(V x) {
  const V e = exp_nonpositive(V::zero() - V::abs(x));
  return V::select(V::less(x, V::zero()), e, V::all(1.0f)) / (V::all(1.0f) + e);
}

// Below 0.625 x + x^3 P(x^2), relative error of P < 8e-9; above (1 - e) / (1 + e), e = exp(-2 |x|).
template <typename V>
V tanh(V x) {
  const V a = V::abs(x), z = x * x;
  const V e = exp_nonpositive(V::all(-2.0f) * a);
  const V large = (V::all(1.0f) - e) / (V::all(1.0f) + e);
  const V p =
      polynomial<V>(z, {-0x1.55553ap-2f, 0x1.1107acp-3f, -0x1.b83a12p-5f, 0x1.51c5d0p-6f, -0x1.733f6ap-8f});
  return V::select(V::less(a, V::all(0.625f)), V::fma(x * z, p, x), signed_like(large, x));
}

// e^x; infinite from 87 on.
template <typename V>
V exponential(V x) {
  const V e = exp_nonpositive(V::zero() - V::abs(x));
  return V::select(V::less(V::zero(), x), V::all(1.0f) / e, e);
}

// sin r for |r| <= pi/2 + 0.003: r + r^3 Q(r^2), error < 1.1e-8.
template <typename V>
V sine_of_quarter(V r) {
  const V z = r * r;
  const V q = polynomial<V>(z, {-0x1.55554ep-3f, 0x1.110ef4p-7f, -0x1.9f70a0p-13f, 0x1.5d9590p-19f});
  return V::fma(r * z, q, r);
}

// cos r for |r| <= 1: 1 - r^2/2 + r^4 R(r^2), error < 2.3e-9.
template <typename V>
V cosine_of_unit(V r) {
  const V z = r * r;
  const V q = polynomial<V>(z, {0x1.55553ap-5f, -0x1.6c011ap-10f, 0x1.96f3e4p-16f});
  return V::fma(z * z, q, V::fma(z, V::all(-0.5f), V::all(1.0f)));
}

// Computes the lanes of t outside `reducible` one by one; out of line, so that it does not slow the others.
template <typename V>
[[gnu::noinline, gnu::cold]] V sine_lanes(V t, V s, uint32_t reducible) {
  float lanes[16], arguments[16];
  s.store(lanes);
  t.store(arguments);
  for (int i = 0; i < 16; ++i)
    if ((reducible >> i & 1u) == 0) lanes[i] = sine_of_large(arguments[i]);
  return V::load(lanes);
}

// sin t, absolute error < 1.3e-7: t = n pi + r, reduced as in sin_squared; odd n turns the sign.
template <typename V>
V sine(V t) {
  const V magic = V::all(kMagic);
  const V n = V::fma(t, V::all(0x1.45f306p-2f), magic) - magic;
  const V r = V::fnma(n, V::all(-0x1.777a5cp-24f), V::fnma(n, V::all(0x1.921fb6p+1f), t));
  const V even = V::fma(n, V::all(0.5f), magic) - magic;
  const V odd = V::fnma(even, V::all(2.0f), n);  // -1, 0 or 1
  const V s = sine_of_quarter(r) * V::fnma(odd * odd, V::all(2.0f), V::all(1.0f));
  const uint32_t reducible = V::bits(V::at_most(V::abs(t), V::all(kMostReduced)));
  return reducible == 0xffffu ? s : sine_lanes(t, s, reducible);
}

// sin(2 pi x) for |x| <= 1/4: error < 1.2e-8 and a rounding.
template <typename V>
V sine_of_turns(V x) {
  const V z = x * x;
  const V q = polynomial<V>(z, {-0x1.4abbc8p+5f, 0x1.466948p+6f, -0x1.3256d4p+6f, 0x1.3e15eap+5f});
  return V::fma(x * z, q, x * V::all(0x1.921fb6p+2f));
}

// sin(2 pi f) and cos(2 pi f) of a turn f in [0, 1]; the range reduction is exact for multiples of 2^-24.
template <typename V>
V sine_of_turn(V f) {  // -sin(2 pi x), x = f - 1/2; sin rises and falls alike about 1/4
  const V x = f - V::all(0.5f), quarter = V::all(0.25f);
  return signed_like(sine_of_turns(quarter - V::abs(V::abs(x) - quarter)), V::zero() - x);
}
template <typename V>
V cosine_of_turn(V f) {  // -cos(2 pi x) = -sin(2 pi (1/4 - |x|))
  return V::zero() - sine_of_turns(V::all(0.25f) - V::abs(f - V::all(0.5f)));
}

// The angle of (x, y) in (-pi, pi], 0 for (0, 0); a y of -0 counts as 0.
// atan a = a + a^3 P(a^2) for a <= 1, relative error of P < 5e-9.
template <typename V>
V angle(V y, V x) {
  const V ax = V::abs(x), ay = V::abs(y), zero = V::zero();
  const V larger = V::max(ax, ay), smaller = V::select(V::less(ax, ay), ax, ay);
  const V a = smaller / V::select(V::less(zero, larger), larger, V::all(1.0f));
  const V z = a * a;
  const V p =
      polynomial<V>(z, {-0x1.555548p-2f, 0x1.999388p-3f, -0x1.242cbep-3f, 0x1.c0dd18p-4f, -0x1.588030p-4f,
                        0x1.da6dccp-5f, -0x1.fbc37ep-6f, 0x1.60359cp-7f, -0x1.c91afep-10f});
  const V atan = V::fma(a * z, p, a);
  const V upright = V::select(V::less(ax, ay), V::all(0x1.921fb6p+0f) - atan, atan);
  const V half = V::select(V::less(x, zero), V::all(0x1.921fb6p+1f) - upright, upright);
  return signed_like(half, y);
}

}  // namespace shoal::ops::cpu
