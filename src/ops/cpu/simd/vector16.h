// Vector16<Isa>: 16 floats that behave alike on every instruction set, lane by lane and bit by bit.
//
// A kernel is a template over V = Vector16<Isa> and is instantiated once per vector_<isa>.cc. Those files are
// compiled for their instruction set, so nothing in them may have a name that another file shares: an inline
// function of the standard library, say, could be emitted with wide instructions and picked by the linker for
// the whole program. Templates over V are safe, since V differs; plain inline functions are not.
//
// Members every Vector16 has:
//   zero(), all(x), load(p), load(p, n), load_bf16(p), load_bf16(p, n)   n < 16: lanes from n on are 0
//   load_bf16_pairs(p): 32 of them, a pair a lane; first_of_bf16_pairs, second_of_bf16_pairs
//   store(p), store(p, n), store_bf16(p), store_bf16(p, n)              bf16: nearest even, NaN stays NaN
//   store_low_bytes(p), store_low_bytes(p, n): the low eight bits of each lane, as int8_t
//   + - * /, fma(a, b, c) = a*b + c, fnma(a, b, c) = c - a*b, max(a, b) = a > b ? a : b, abs, sqrt
//   less(a, b), at_most(a, b), unordered(a), between(begin, end) = lanes begin <= i < end: Mask
//   select(m, a, b) = m ? a : b; bits(m): lane i in bit i
//   negate_even, swap_pairs, even_of_pairs, odd_of_pairs: for pairs of lanes (2j, 2j+1)
//   power_of_two(m): 2^n of m = n + kMagic, -126 <= n <= 127
//   sum(a): the tree that halves 16 lanes to 8, 4, 2, 1: lane i takes lane i + 8, then i + 4, i + 2, i + 1
//   add_to(sums, a): adds the lanes, as doubles, to sums[8] (for exact sums only: the order is free)
//   transpose(rows[16])
//   compress(bits, a, p): stores the lanes in `bits` in order and returns how many; may write 16 lanes at p
//   split(u, &n) = m of u = 2^n m, m in [sqrt 1/2, sqrt 2), for normal u > 0
//   Words, 16 unsigned numbers of 32 bits: all(x), load(p), + and ^ lane by lane (sums wrap),
//     multiply(a, m, &low): the upper halves of a * m, upper_bits(a): a >> 9 as floats
//   kQueries, kColumns: register tile of the attention kernel
#pragma once

#include <cstdint>

namespace shoal::ops::cpu {

template <typename Isa>
struct Vector16;

// Adding it to a float rounds the float to an integer, which is then in the low mantissa bits.
inline constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23

// Bits of sqrt 1/2.
inline constexpr int32_t kSqrtHalf = 0x3f3504f3;

}  // namespace shoal::ops::cpu
