// The walk over AMX tiles, run with a model of the instructions on any CPU.
#include "ops/cpu/gemm/matrix_amx_block.h"

#include "ops/cpu/gemm/amx_model_testing.h"
#include "ops/matrix_testing.h"

namespace shoal::ops::cpu {
namespace {

using testing::ModelTiles;

TEST(AmxBlock, GivesTheBitsOfThePortableKernel) {
  constexpr int64_t kMostRows = 32, kTaps = 3, kDepth = 96, kStride = kDepth + 32;
  std::vector<Bf16> x;
  std::vector<float> wide_x;
  for (const float v : random_values((2 * kMostRows + kTaps) * kStride, 1)) {
    x.push_back(float_to_bf16(v));
    wide_x.push_back(bf16_to_float(x.back()));
  }
  std::vector<Bf16> w;
  for (const float v : random_values(2 * kTaps * kDepth * 16, 2)) w.push_back(float_to_bf16(v));
  for (const int64_t taps : {int64_t{1}, kTaps}) {
    for (const int64_t depth : {int64_t{32}, kDepth}) {
      for (const int panels : {1, 2}) {
        for (const int rows : {1, 2, 15, 16, 17, 31, 32}) {
          alignas(64) float got[kMostSums], want[kMostSums];
          ProductBlock block{.input = x.data(),
                             .row_stride = kStride,
                             .tap_stride = 2 * kStride,
                             .weights = reinterpret_cast<const char*>(w.data()),
                             .panel_stride = kTaps * kDepth * 32,
                             .taps = taps,
                             .depth = depth,
                             .rows = rows,
                             .panels = panels,
                             .sums = got};
          multiply_tiles<ModelTiles>(block);
          block.input = wide_x.data();
          block.sums = want;
          kPortableMatrixKernels.bf16.multiply(block);
          SCOPED_TRACE(::testing::Message() << rows << " rows, " << panels << " panels, depth " << depth);
          const size_t count = static_cast<size_t>(rows * panels * 16);
          expect_same_bits({got, got + count}, {want, want + count});
        }
      }
    }
  }
}

// Rows after the last one are read but have no effect.
TEST(AmxBlock, MemoryAfterTheLastRowDoesNotMatter) {
  constexpr int64_t kDepth = 32;
  std::vector<Bf16> x(32 * kDepth, 0x7fc0);  // NaN
  for (int64_t k = 0; k < kDepth; ++k) x[static_cast<size_t>(k)] = float_to_bf16(1.0f);
  std::vector<Bf16> w(kDepth * 16, float_to_bf16(2.0f));
  alignas(64) float sums[kMostSums];
  multiply_tiles<ModelTiles>({.input = x.data(),
                              .row_stride = kDepth,
                              .tap_stride = 0,
                              .weights = reinterpret_cast<const char*>(w.data()),
                              .panel_stride = 0,
                              .taps = 1,
                              .depth = kDepth,
                              .rows = 1,
                              .panels = 1,
                              .sums = sums});
  EXPECT_THAT(std::vector<float>(sums, sums + 16), ::testing::Each(64.0f));
}

}  // namespace
}  // namespace shoal::ops::cpu
