// Convolutions with weights of 8 bits give the bits of 16-bit weights that were rounded to the same values
// before.
#include "ops/conv1d_testing.h"
#include "ops/cuda/conv/residual_unit.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/round_weights.h"

namespace shoal::ops::cuda {
namespace {

class Int8Convolutions : public ConvTestOf<CudaTest>, public testing::WithParamInterface<DType> {
 protected:
  static DType operand() { return GetParam(); }
  static MatrixFormat int8() { return {DType::i8, operand()}; }

  // Matrices of the same values: in 8 bits, rounded here and ahead, and in 16.
  struct Three {
    PackedMatrix narrow, ahead, wide;
  };
  // pack(kernel, bias, format). axis: that of the outputs.
  template <typename Pack>
  Three three(const Shape& shape, int axis, Pack pack) {
    ThreadTeam team(2);
    std::vector<float> w = random_values(shape.elements(), 31, 0.3f), bias = random_values(shape[axis], 32);
    const TensorView kernel = view_of(w, shape), offset = view_of(bias, {shape[axis]});
    const Tensor integers(DType::i8, shape), scales(DType::f32, {shape[axis]});
    round_kernel_to_int8(team, kernel, axis, integers, scales);
    const Tensor values = widen_int8(team, integers, scales, axis, operand());
    return {pack(kernel, offset, int8()), pack(StoredMatrix(integers, scales), offset, int8()),
            pack(values, offset, operand())};
  }

  Rows run(const PackedMatrix& weight, int64_t dilation, const Rows& xs, Rows& histories,
           const Epilogue& epilogue = {}) {
    const Sequences s = place(xs, histories, weight.depth, (weight.taps - 1) * dilation);
    const Tensor y = put(random_values(s.x.dim(0) * weight.outputs, 33), {s.x.dim(0), weight.outputs});
    causal_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, weight, dilation, y, epilogue);
    take(s, histories);
    return apart(s, get(y), weight.outputs);
  }
  void expect_same(const Three& of, int64_t dilation) {
    for (const std::vector<int64_t>& counts :
         {std::vector<int64_t>{1}, {3, 0, 2}, {16}, {17}, {40, 1}, {300, 7}, {3000}}) {
      Rows xs;
      for (const int64_t count : counts) xs.push_back(random_values(count * of.wide.depth, 34));
      for (const bool accumulate : {false, true}) {
        Rows histories, same_histories, ahead_histories;
        const Epilogue epilogue{.accumulate = accumulate};
        const Rows want = run(of.wide, dilation, xs, histories, epilogue);
        EXPECT_EQ(run(of.narrow, dilation, xs, same_histories, epilogue), want) << counts[0] << " rows";
        EXPECT_EQ(run(of.ahead, dilation, xs, ahead_histories, epilogue), want) << counts[0] << " rows";
        EXPECT_EQ(same_histories, histories);
      }
    }
    EXPECT_LT(of.narrow.storage.bytes(), of.wide.storage.bytes());
  }
};

TEST_P(Int8Convolutions, GiveTheBitsOfTheSameValuesIn16Bits) {
  for (const Geometry& g : kGeometries) {
    if (g.outputs == 1) continue;  // kernels of their own, in f32 alone
    SCOPED_TRACE(testing::Message() << g);
    expect_same(three({g.outputs, g.inputs, g.taps}, 0,
                      [&](const StoredMatrix& kernel, TensorView bias, MatrixFormat format) {
                        return pack_conv1d(ctx(), kernel, bias, format);
                      }),
                g.dilation);
  }
}

TEST_P(Int8Convolutions, StridedAndTransposedToo) {
  for (const auto& [in, out, stride] :
       std::vector<std::array<int64_t, 3>>{{24, 40, 2}, {33, 17, 3}, {64, 128, 8}, {128, 64, 4}}) {
    for (const int64_t taps : {1, 2}) {
      SCOPED_TRACE(testing::Message() << in << " -> " << out << ", stride " << stride << ", taps " << taps);
      const int64_t size = taps * stride, by = stride;
      expect_same(three({out, in, size}, 0,
                        [&](const StoredMatrix& kernel, TensorView bias, MatrixFormat format) {
                          return pack_strided_conv1d(ctx(), kernel, bias, by, format);
                        }),
                  1);
      expect_same(three({in, out, size}, 1,
                        [&](const StoredMatrix& kernel, TensorView bias, MatrixFormat format) {
                          return pack_transposed_conv1d(ctx(), kernel, bias, by, format);
                        }),
                  1);
    }
  }
}

TEST_P(Int8Convolutions, InResidualUnitsToo) {
  for (const int64_t channels : {40, 64, 96, 128, 192, 256, 384}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const auto plain = [&](const StoredMatrix& kernel, TensorView bias, MatrixFormat format) {
      return pack_conv1d(ctx(), kernel, bias, format);
    };
    const Three wide = three({channels, channels, 7}, 0, plain),
                narrow = three({channels, channels, 1}, 0, plain);
    std::vector<float> alphas = random_values(channels, 35);
    for (float& alpha : alphas) alpha = std::abs(alpha) + 0.1f;
    const Tensor alpha = put(alphas, {channels});
    for (const int64_t rows : {1, 5, 16, 40, 700, 9000}) {
      const Rows xs = {random_values(rows * channels, 36), random_values(3 * channels, 37)};
      std::vector<Rows> results;
      for (const bool in_8_bits : {true, false}) {
        const ResidualConvs convs{in_8_bits ? &wide.narrow : &wide.wide, 3,
                                  in_8_bits ? &narrow.narrow : &narrow.wide, alpha, alpha};
        Rows histories;
        const Sequences s = place(xs, histories, channels, 6 * 3);
        const bool apart_from_x = residual_unit_is_apart(ctx(), convs, s.x.dim(0));
        const Tensor other = put(std::vector<float>(static_cast<size_t>(s.x.elements())), s.x.shape());
        const TensorView y = apart_from_x ? other.view() : s.x.view();
        residual_unit(ctx(), s.x, s.rows(), s.history(), convs, y);
        take(s, histories);
        const std::vector<float> got = get(apart_from_x ? other : s.x);
        results.push_back({got, histories[0], histories[1]});
        if (channels >= 64 && rows == 9000 && choose_unit_kernel(convs, machine_of(ctx()))) {
          EXPECT_TRUE(apart_from_x) << "the fused kernel is what is tested";
        }
      }
      EXPECT_EQ(results[0], results[1]) << rows << " rows";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, Int8Convolutions, testing::Values(DType::bf16, DType::f16),
                         [](const auto& suite) { return std::string(name_of(suite.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
