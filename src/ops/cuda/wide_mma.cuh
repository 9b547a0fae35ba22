// The tensor cores of sm_90a: 64 rows at a time for a warpgroup, both operands from shared memory.
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

// sums = a b, or sums += a b: 64 rows by 2 kSums outputs over 16 inputs. Warp w of the warpgroup gets rows
// 16 w .. 16 w + 15, its lane (g = lane / 4, q = lane % 4) of every eight outputs n, in sums[4 * (n / 8)] and
// behind it, rows g, g, g + 8, g + 8 of outputs 2 q, 2 q + 1, 2 q, 2 q + 1.
template <typename T>
__device__ inline void multiply_wide(float (&sums)[8], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %10, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.%11.%11 {"
      "%0,%1,%2,%3,%4,%5,%6,%7}, "
      "%8, %9, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[16], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %18, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.%19.%19 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "%16, %17, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[24], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %26, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n48k16.f32.%27.%27 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23}, "
      "%24, %25, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[32], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.%35.%35 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
        "+f"(sums[30]), "+f"(sums[31])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[48], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %50, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.%51.%51 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, "
      "%48, %49, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
        "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
        "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
        "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[64], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %66, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.%67.%67 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
        "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
        "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
        "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]),
        "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]),
        "+f"(sums[54]), "+f"(sums[55]), "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]),
        "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

template <typename T>
__device__ inline void multiply_wide(float (&sums)[96], uint64_t a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %98, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.%99.%99 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95}, "
      "%96, %97, adds, 1, 1, 0, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
        "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
        "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
        "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47]),
        "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51]), "+f"(sums[52]), "+f"(sums[53]),
        "+f"(sums[54]), "+f"(sums[55]), "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59]),
        "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63]), "+f"(sums[64]), "+f"(sums[65]),
        "+f"(sums[66]), "+f"(sums[67]), "+f"(sums[68]), "+f"(sums[69]), "+f"(sums[70]), "+f"(sums[71]),
        "+f"(sums[72]), "+f"(sums[73]), "+f"(sums[74]), "+f"(sums[75]), "+f"(sums[76]), "+f"(sums[77]),
        "+f"(sums[78]), "+f"(sums[79]), "+f"(sums[80]), "+f"(sums[81]), "+f"(sums[82]), "+f"(sums[83]),
        "+f"(sums[84]), "+f"(sums[85]), "+f"(sums[86]), "+f"(sums[87]), "+f"(sums[88]), "+f"(sums[89]),
        "+f"(sums[90]), "+f"(sums[91]), "+f"(sums[92]), "+f"(sums[93]), "+f"(sums[94]), "+f"(sums[95])
      : "l"(a), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

// The same for 96 outputs, with the 64 rows in registers: a[0] holds inputs 2 q, 2 q + 1 of row g, a[1] of
// row g + 8, a[2] and a[3] the inputs eight behind them.
template <typename T>
__device__ inline void multiply_registers(float (&sums)[48], const uint32_t* a, uint64_t b, uint32_t add) {
  asm volatile(
      "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, %53, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.%54.%54 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, "
      "{%48,%49,%50,%51}, %52, adds, 1, 1, 0;\n\t}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
        "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]),
        "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]),
        "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]),
        "+f"(sums[30]), "+f"(sums[31]), "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35]),
        "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39]), "+f"(sums[40]), "+f"(sums[41]),
        "+f"(sums[42]), "+f"(sums[43]), "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "C"(OperandName<T>::kValue));
}

}  // namespace shoal::ops::cuda
