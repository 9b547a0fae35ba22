// exp, sin^2 and the Gaussian tail on 16 lanes: the same sequence of IEEE operations on every instruction
// set. Coefficients: minimax fits (Remez) in double, rounded to f32.
#pragma once

#include <cstdint>

#include "ops/cpu/simd/vector16.h"

namespace shoal::ops::cpu {

// e^x for x <= 0; 0 below -87 (1.6e-38, where denormals begin); NaN stays. Relative error about 0.6 ulp.
// x = n ln2 + r, |r| <= ln2 / 2: e^r = 1 + r + r^2 Q(r), |error of Q r^2| < 3.2e-9.
template <typename V>
V exp_nonpositive(V x) {
  const V least = V::all(-87.0f);
  const V clamped = V::max(least, x);  // max returns its second operand when one is a NaN
  const V magic = V::fma(clamped, V::all(0x1.715476p+0f), V::all(kMagic));
  const V n = magic - V::all(kMagic);
  const V r = V::fnma(n, V::all(-0x1.05c610p-29f), V::fnma(n, V::all(0x1.62e430p-1f), clamped));
  V q = V::fma(r, V::all(0x1.6db64cp-10f), V::all(0x1.123ce0p-7f));
  q = V::fma(r, q, V::all(0x1.55545cp-5f));
  q = V::fma(r, q, V::all(0x1.55548cp-3f));
  q = V::fma(r, q, V::all(0.5f));
  const V y = V::all(1.0f) + V::fma(r * r, q, r);
  return V::select(V::less(x, least), V::zero(), y * V::power_of_two(magic));
}

// Arguments up to here leave n < 2^15, so that n P1 (Cody-Waite) cancels exactly and n (pi - P1 - P2) <
// 2^-33.
inline constexpr float kMostReduced = 65536.0f;

// sin^2 t for |t| <= kMostReduced, absolute error < 1.5e-7; sin^2 has period pi, so no quadrant is needed.
// t = n pi + r, |r| <= pi/2 + 0.003: sin r = r + r^3 Q(r^2), error < 4.8e-9.
template <typename V>
V sin_squared(V t) {
  const V n = V::fma(t, V::all(0x1.45f306p-2f), V::all(kMagic)) - V::all(kMagic);
  const V r = V::fnma(n, V::all(-0x1.777a5cp-24f), V::fnma(n, V::all(0x1.921fb6p+1f), t));
  const V z = r * r;
  V q = V::fma(z, V::all(0x1.5cd806p-19f), V::all(-0x1.9f5d9ep-13f));
  q = V::fma(z, q, V::all(0x1.110e5ep-7f));
  q = V::fma(z, q, V::all(-0x1.555548p-3f));
  const V s = V::fma(r * z, q, r);
  return s * s;
}

// sin(x)^2 for arguments beyond the range of the reduction above.
float sin_squared_of_large(float x);

// Computes the lanes of t outside `reducible` one by one; out of line, so that it does not slow the others.
template <typename V>
[[gnu::noinline, gnu::cold]] V sin_squared_lanes(V t, V s, uint32_t reducible) {
  float lanes[16], arguments[16];
  s.store(lanes);
  t.store(arguments);
  for (int i = 0; i < 16; ++i)
    if ((reducible >> i & 1u) == 0) lanes[i] = sin_squared_of_large(arguments[i]);
  return V::load(lanes);
}

// The same for any t.
template <typename V>
V sin_squared_any(V t) {
  const uint32_t reducible = V::bits(V::at_most(V::abs(t), V::all(kMostReduced)));
  const V s = sin_squared(t);
  return reducible == 0xffffu ? s : sin_squared_lanes(t, s, reducible);
}

template <typename V>
V snake(V x, V alpha) {
  return x + sin_squared_any(alpha * x) / (alpha + V::all(1e-9f));
}

// x / (1 + e^-x), in a form that cannot overflow.
template <typename V>
V silu(V x) {
  const V e = exp_nonpositive(V::zero() - V::abs(x));
  return V::select(V::less(x, V::zero()), x * e, x) / (V::all(1.0f) + e);
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|), with Phi(-a) = e^(-a^2/2) P(1 / (1 + 0.35 a)); P fits to 2.6e-8
// relative for a <= 13.2, beyond which the tail is below 1e-38.
template <typename V>
V gelu(V x) {
  const V a = V::abs(x);
  const V t = V::all(1.0f) / V::fma(a, V::all(0.35f), V::all(1.0f));
  V p = V::fma(t, V::all(-0x1.c49740p-6f), V::all(0x1.169bccp-3f));
  p = V::fma(t, p, V::all(-0x1.e73dbap-3f));
  p = V::fma(t, p, V::all(0x1.17de44p-3f));
  p = V::fma(t, p, V::all(-0x1.669ef8p-8f));
  p = V::fma(t, p, V::all(0x1.8bf110p-4f));
  p = V::fma(t, p, V::all(0x1.f66c64p-4f));
  p = V::fma(t, p, V::all(0x1.1d4caap-3f));
  p = V::fma(t, p, V::all(0x1.1e119ap-3f));
  p = V::fma(t, p, V::all(-0x1.775056p-19f));
  const V tail = p * exp_nonpositive(a * a * V::all(-0.5f));
  return V::fnma(a, tail, V::max(V::zero(), x));
}

// 0.5 x (1 + tanh u) = x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3), in a form that cannot
// overflow.
template <typename V>
V gelu_tanh(V x) {
  const V cubic = V::fma(x * x, V::all(0x1.2444f2p-4f), V::all(0x1.988454p+0f));  // 2 u / x
  const V e = exp_nonpositive(V::zero() - V::abs(x * cubic));
  return V::select(V::less(x, V::zero()), x * e, x) / (V::all(1.0f) + e);
}

}  // namespace shoal::ops::cpu
