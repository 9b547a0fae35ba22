// The walks over AMX tiles of 8- and 4-bit weights, run with a model of the instructions on any CPU.
#include "ops/cpu/gemm/matrix_amx_integers.h"

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/bf16.h"
#include "ops/cpu/gemm/amx_model_testing.h"
#include "ops/cpu/gemm/matrix_layout.h"
#include "ops/matrix_testing.h"

namespace shoal::ops::cpu {
namespace {

using testing::ModelTiles;

constexpr int64_t kAllRows = 64;  // 32, and as many that tiles may read

// Random operands of a block: whatever bytes, for only the two kernels are compared.
class IntegerOperands {
 public:
  IntegerOperands(MatrixFormat format, int64_t depth, uint32_t seed)
      : format_(format), depth_(depth), row_stride_(depth + 64), random_(seed) {
    for (int64_t i = 0; i < kAllRows * row_stride_; ++i) inputs_.push_back(static_cast<int8_t>(random_()));
    const int64_t scales = kAllRows * depth / kGroup;
    input_scales_ = random_values(scales, seed + 1);
    for (int64_t i = 0; i < scales; ++i)
      offsets_.push_back(offset_of(i / (depth / kGroup), i % (depth / kGroup)));
    if (format.group > 0) sums_ = random_values(kAllRows * depth / format.group, seed + 2);
    const PanelLayout layout = panel_layout(format, 1, depth);
    panel_stride_ = layout.panel_stride;
    weights_ = Tensor(DType::u8, {2 * panel_stride_});
    for (uint8_t& byte : weights_.span<uint8_t>()) byte = static_cast<uint8_t>(random_());
    if (format.weights == DType::u4) write_headers();
  }

  ProductBlock block(int rows, int panels, float* to) const {
    return {.input = inputs_.data(),
            .row_stride = row_stride_,
            .weights = static_cast<const char*>(weights_.view().data()),
            .panel_stride = panel_stride_,
            .taps = 1,
            .depth = depth_,
            .rows = rows,
            .panels = panels,
            .sums = to,
            .input_scales = input_scales_.data(),
            .input_offsets = offsets_.data(),
            .scale_stride = depth_ / kGroup,
            .group = format_.group,
            .input_sums = sums_.data(),
            .sum_stride = format_.group > 0 ? depth_ / format_.group : 0};
  }

 private:
  // What weights stored with an offset add to the product of a group.
  int32_t offset_of(int64_t row, int64_t group) const {
    const auto begin = inputs_.begin() + row * row_stride_ + group * kGroup;
    return kIntegerOffset * std::accumulate(begin, begin + kGroup, 0);
  }
  // Scales and minima are numbers, or all sums would be NaN.
  void write_headers() {
    const int64_t groups = 2 * depth_ / format_.group;
    const std::vector<float> values = random_values(groups * 32, 7);
    for (int64_t i = 0; i < groups * 32; ++i) {
      uint8_t* const header = weights_.as<uint8_t>() + i / 32 * group_bytes(format_.group);
      const Bf16 value = float_to_bf16(values[static_cast<size_t>(i)]);
      std::memcpy(header + i % 32 * 2, &value, 2);
    }
  }

  MatrixFormat format_;
  int64_t depth_, row_stride_, panel_stride_ = 0;
  std::mt19937 random_;
  std::vector<int8_t> inputs_;
  std::vector<float> input_scales_, sums_;
  std::vector<int32_t> offsets_;
  Tensor weights_;
};

using Multiply = void (*)(const ProductBlock&);

void expect_equal_products(MatrixFormat format, Multiply tiles, Multiply portable) {
  for (const int64_t depth : {kGroup, 3 * kGroup}) {
    const IntegerOperands operands(format, depth, static_cast<uint32_t>(depth + format.group));
    for (const int panels : {1, 2}) {
      for (const int rows : {1, 2, 15, 16, 17, 31, 32}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << panels << " panels, depth " << depth);
        alignas(64) float got[kMostSums], want[kMostSums];
        tiles(operands.block(rows, panels, got));
        for (int row = 0; row < rows; ++row) {
          ProductBlock one = operands.block(1, panels, want + row * panels * 16);
          one.input = static_cast<const int8_t*>(one.input) + row * one.row_stride;
          one.input_scales += row * one.scale_stride;
          one.input_offsets += row * one.scale_stride;
          one.input_sums += row * one.sum_stride;
          portable(one);
        }
        const size_t count = static_cast<size_t>(rows * panels * 16);
        expect_same_bits({got, got + count}, {want, want + count});
      }
    }
  }
}

TEST(AmxIntegers, OfEightBitsHaveTheBitsOfThePortableKernel) {
  expect_equal_products({DType::i8, DType::bf16}, multiply_integer_tiles<ModelTiles>,
                        kPortableMatrixKernels.i8.multiply);
}

TEST(AmxIntegers, OfFourBitsHaveTheBitsOfThePortableKernel) {
  for (const int64_t group : {32, 64, 128}) {
    SCOPED_TRACE(::testing::Message() << "groups of " << group);
    expect_equal_products({DType::u4, DType::i8, group}, multiply_nibble_tiles<ModelTiles>,
                          kPortableMatrixKernels.u4.multiply);
  }
}

}  // namespace
}  // namespace shoal::ops::cpu
