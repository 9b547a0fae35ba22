// The tensor cores of sm_90a: 64 rows at a time for a warpgroup, from shared memory or registers, by an
// operand in shared memory.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shoal::ops::cuda {

// Names an operand in shared memory: groups of eight rows of 64 bytes (32 inputs), swizzled as
// matrix_layout.cuh says, each group 512-byte aligned and `group_bytes` behind the one before. Inputs 16 ..
// 31 of it: add kSecondHalf.
__device__ inline uint64_t operand_at(uint32_t shared, uint32_t group_bytes) {
  constexpr uint64_t kSwizzle64 = 2;
  return kSwizzle64 << 62 | static_cast<uint64_t>(group_bytes >> 4) << 32 | uint64_t{1} << 16 | shared >> 4;
}
constexpr uint64_t kSecondHalf = 32 >> 4;

// The same of rows of 128 bytes (64 inputs), the eight chunks of row n at their places xor n % 8, each group
// 1,024-byte aligned and right behind the one before. Inputs 32 .. of it: add kSecondTile.
__device__ inline uint64_t operand_of_pairs_at(uint32_t shared) {
  constexpr uint64_t kSwizzle128 = 1, kGroupBytes = 1024;
  return kSwizzle128 << 62 | (kGroupBytes >> 4) << 32 | uint64_t{1} << 16 | shared >> 4;
}
constexpr uint64_t kSecondTile = 64 >> 4;

// An operand whose rows are its outputs, not its inputs, and hold 64 of them in 128 bytes, chunks permuted as
// above: 16 inputs follow each other in two groups of eight rows. For multiply_rows.
__device__ inline uint64_t operand_of_outputs_at(uint32_t shared) { return operand_of_pairs_at(shared); }
constexpr uint64_t kSixteenRows = 16 * 128 >> 4;

// Before the first multiplication, and after registers of sums were touched.
__device__ inline void begin_multiplications() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_multiplications() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most kOpen groups of multiplications are unfinished.
template <int kOpen>
__device__ inline void wait_for_multiplications() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOpen) : "memory");
}
// Keeps the compiler from moving uses of the sums across this place.
template <int kSums>
__device__ inline void pin(float (&sums)[kSums]) {
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}

// For sums that the first multiplication overwrites: whatever their registers hold.
template <int kSums>
__device__ inline void leave_undefined(float (&sums)[kSums]) {
#pragma unroll
  for (float& sum : sums) asm volatile("" : "=f"(sum));
}

template <typename T>
struct OperandName;
template <>
struct OperandName<__nv_bfloat16> {
  static constexpr char kValue[] = "bf16";
};
template <>
struct OperandName<__half> {
  static constexpr char kValue[] = "f16";
};

// The sums of a multiplication as operands of an instruction: "%0" and so on, eight at a time, and their
// places.
#define SHOAL_NAMES(a, b, c, d, e, f, g, h) "%" #a ",%" #b ",%" #c ",%" #d ",%" #e ",%" #f ",%" #g ",%" #h
#define SHOAL_NAMES_8 SHOAL_NAMES(0, 1, 2, 3, 4, 5, 6, 7)
#define SHOAL_NAMES_16 SHOAL_NAMES_8 "," SHOAL_NAMES(8, 9, 10, 11, 12, 13, 14, 15)
#define SHOAL_NAMES_24 SHOAL_NAMES_16 "," SHOAL_NAMES(16, 17, 18, 19, 20, 21, 22, 23)
#define SHOAL_NAMES_32 SHOAL_NAMES_24 "," SHOAL_NAMES(24, 25, 26, 27, 28, 29, 30, 31)
#define SHOAL_NAMES_48 \
  SHOAL_NAMES_32       \
  "," SHOAL_NAMES(32, 33, 34, 35, 36, 37, 38, 39) "," SHOAL_NAMES(40, 41, 42, 43, 44, 45, 46, 47)
#define SHOAL_NAMES_64 \
  SHOAL_NAMES_48       \
  "," SHOAL_NAMES(48, 49, 50, 51, 52, 53, 54, 55) "," SHOAL_NAMES(56, 57, 58, 59, 60, 61, 62, 63)
#define SHOAL_NAMES_72 SHOAL_NAMES_64 "," SHOAL_NAMES(64, 65, 66, 67, 68, 69, 70, 71)
#define SHOAL_NAMES_80 \
  SHOAL_NAMES_64       \
  "," SHOAL_NAMES(64, 65, 66, 67, 68, 69, 70, 71) "," SHOAL_NAMES(72, 73, 74, 75, 76, 77, 78, 79)
#define SHOAL_NAMES_96 \
  SHOAL_NAMES_80       \
  "," SHOAL_NAMES(80, 81, 82, 83, 84, 85, 86, 87) "," SHOAL_NAMES(88, 89, 90, 91, 92, 93, 94, 95)
#define SHOAL_SUMS(i)                                                                        \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SHOAL_SUMS_16(i) SHOAL_SUMS(i), SHOAL_SUMS(i + 8)
#define SHOAL_SUMS_32(i) SHOAL_SUMS_16(i), SHOAL_SUMS_16(i + 16)
#define SHOAL_SUMS_48(i) SHOAL_SUMS_32(i), SHOAL_SUMS_16(i + 32)

// Of so many sums of a thread and outputs: the numbers of the operands behind them, and the sums' places.
#define SHOAL_MULTIPLY_WIDE(count, outputs, a_at, b_at, add_at, type_at, ...)                       \
  template <typename T>                                                                             \
  __device__ inline void multiply_wide(float(&sums)[count], uint64_t a, uint64_t b, uint32_t add) { \
    asm volatile("{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %" #add_at                             \
                 ", 0;\n\t"                                                                         \
                 "wgmma.mma_async.sync.aligned.m64n" #outputs "k16.f32.%" #type_at ".%" #type_at    \
                 " {" SHOAL_NAMES_##count "}, %" #a_at ", %" #b_at ", adds, 1, 1, 0, 0;\n\t}"       \
                 : __VA_ARGS__                                                                      \
                 : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));                          \
  }

// sums = a b, or sums += a b: 64 rows by 2 kSums outputs over 16 inputs. Warp w of the warpgroup gets rows
// 16 w .. 16 w + 15, its lane (g = lane / 4, q = lane % 4) of every eight outputs n, in sums[4 * (n / 8)] and
// behind it, rows g, g, g + 8, g + 8 of outputs 2 q, 2 q + 1, 2 q, 2 q + 1.
SHOAL_MULTIPLY_WIDE(8, 16, 8, 9, 10, 11, SHOAL_SUMS(0))
SHOAL_MULTIPLY_WIDE(16, 32, 16, 17, 18, 19, SHOAL_SUMS_16(0))
SHOAL_MULTIPLY_WIDE(24, 48, 24, 25, 26, 27, SHOAL_SUMS_16(0), SHOAL_SUMS(16))
SHOAL_MULTIPLY_WIDE(32, 64, 32, 33, 34, 35, SHOAL_SUMS_32(0))
SHOAL_MULTIPLY_WIDE(48, 96, 48, 49, 50, 51, SHOAL_SUMS_48(0))
SHOAL_MULTIPLY_WIDE(64, 128, 64, 65, 66, 67, SHOAL_SUMS_32(0), SHOAL_SUMS_32(32))
SHOAL_MULTIPLY_WIDE(72, 144, 72, 73, 74, 75, SHOAL_SUMS_48(0), SHOAL_SUMS_16(48), SHOAL_SUMS(64))
SHOAL_MULTIPLY_WIDE(80, 160, 80, 81, 82, 83, SHOAL_SUMS_48(0), SHOAL_SUMS_32(48))
SHOAL_MULTIPLY_WIDE(96, 192, 96, 97, 98, 99, SHOAL_SUMS_48(0), SHOAL_SUMS_48(48))

// The same with the 64 rows in registers: a[0] holds inputs 2 q, 2 q + 1 of row g, a[1] of row g + 8, a[2]
// and a[3] the inputs eight behind them.
#define SHOAL_MULTIPLY_REGISTERS(name, turned, count, outputs, a_0, a_1, a_2, a_3, b_at, add_at, type_at, \
                                 ...)                                                                     \
  template <typename T>                                                                                   \
  __device__ inline void name(float(&sums)[count], const uint32_t* a, uint64_t b, uint32_t add) {         \
    asm volatile("{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %" #add_at                                   \
                 ", 0;\n\t"                                                                               \
                 "wgmma.mma_async.sync.aligned.m64n" #outputs "k16.f32.%" #type_at ".%" #type_at          \
                 " {" SHOAL_NAMES_##count "}, {%" #a_0 ",%" #a_1 ",%" #a_2 ",%" #a_3 "}, %" #b_at         \
                                          ", adds, 1, 1, " #turned ";\n\t}"                               \
                 : __VA_ARGS__                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add),                          \
                   "C"(OperandName<T>::kValue));                                                          \
  }
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 8, 16, 8, 9, 10, 11, 12, 13, 14, SHOAL_SUMS(0))
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 16, 32, 16, 17, 18, 19, 20, 21, 22, SHOAL_SUMS_16(0))
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 32, 64, 32, 33, 34, 35, 36, 37, 38, SHOAL_SUMS_32(0))
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 48, 96, 48, 49, 50, 51, 52, 53, 54, SHOAL_SUMS_48(0))
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 64, 128, 64, 65, 66, 67, 68, 69, 70, SHOAL_SUMS_32(0),
                         SHOAL_SUMS_32(32))
SHOAL_MULTIPLY_REGISTERS(multiply_registers, 0, 80, 160, 80, 81, 82, 83, 84, 85, 86, SHOAL_SUMS_48(0),
                         SHOAL_SUMS_32(48))
// b: operand_of_outputs_at.
SHOAL_MULTIPLY_REGISTERS(multiply_rows, 1, 32, 64, 32, 33, 34, 35, 36, 37, 38, SHOAL_SUMS_32(0))

#undef SHOAL_MULTIPLY_REGISTERS
#undef SHOAL_MULTIPLY_WIDE
#undef SHOAL_SUMS_48
#undef SHOAL_SUMS_32
#undef SHOAL_SUMS_16
#undef SHOAL_SUMS
#undef SHOAL_NAMES_96
#undef SHOAL_NAMES_80
#undef SHOAL_NAMES_72
#undef SHOAL_NAMES_64
#undef SHOAL_NAMES_48
#undef SHOAL_NAMES_32
#undef SHOAL_NAMES_24
#undef SHOAL_NAMES_16
#undef SHOAL_NAMES_8
#undef SHOAL_NAMES

}  // namespace shoal::ops::cuda
