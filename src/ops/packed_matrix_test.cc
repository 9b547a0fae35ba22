#include "ops/packed_matrix.h"

#include <array>
#include <cstring>

#include "ops/linear.h"
#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

class PackedMatrixTest : public testing::TestWithParam<DType>, protected MatrixFixture {
 protected:
  // Row n of the matrix, read back through products with unit vectors.
  std::vector<float> columns_of(const PackedMatrix& packed) {
    std::vector<float> x(static_cast<size_t>(packed.depth * packed.depth)), y;
    for (int64_t k = 0; k < packed.depth; ++k) x[static_cast<size_t>(k * packed.depth + k)] = 1.0f;
    y.resize(static_cast<size_t>(packed.depth * packed.outputs));
    linear(ctx_, view_of(x, {packed.depth, packed.depth}), packed,
           view_of(y, {packed.depth, packed.outputs}));
    return y;
  }

  static std::vector<float> transposed(const std::vector<float>& w, int64_t rows) {
    const size_t n = static_cast<size_t>(rows), k = w.size() / n;
    std::vector<float> t(w.size());
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < k; ++j)
        t[j * n + i] = GetParam() == DType::bf16 ? round_to_bf16(w[i * k + j]) : w[i * k + j];
    return t;
  }
};

TEST_P(PackedMatrixTest, HoldsWeightsOfEveryFormat) {
  std::vector<float> w = random_values(19 * 45, 1), no_bias;
  EXPECT_EQ(columns_of(pack(w, {19, 45}, no_bias, GetParam())), transposed(w, 19));

  std::vector<Bf16> brain;
  std::vector<float> brain_values;
  for (const float v : w) brain.push_back(float_to_bf16(v)), brain_values.push_back(round_to_bf16(v));
  const TensorView brain_view = TensorView::of(brain.data(), DType::bf16, {19, 45});
  EXPECT_EQ(columns_of(pack_matrix(ctx_, brain_view, {}, GetParam())), transposed(brain_values, 19));
}

TEST_P(PackedMatrixTest, ReadsHalfPrecisionExactly) {
  // 1, -2, 65504 (the largest), 2^-14 (the smallest normal), 2^-24 (the smallest), 0, 1/3, infinity
  std::vector<uint16_t> half = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x0000, 0x3555};
  const std::vector<float> values = {1, -2, 65504, 0x1p-14f, 0x1p-24f, 0, 0.333251953125f};
  const TensorView view = TensorView::of(half.data(), DType::f16, {1, 7});
  EXPECT_EQ(columns_of(pack_matrix(ctx_, view, {}, GetParam())), transposed(values, 1));
  std::vector<uint16_t> infinity = {0x7c00};
  const TensorView bias = TensorView::of(infinity.data(), DType::f16, {1});
  EXPECT_EQ(pack_matrix(ctx_, view, bias, GetParam()).bias.as<float>()[0], INFINITY);
}

TEST_P(PackedMatrixTest, RowsMayBeStrided) {
  std::vector<float> big = random_values(6 * 50, 2), part;
  for (size_t n = 0; n < 6; ++n) part.insert(part.end(), &big[n * 50 + 3], &big[n * 50 + 43]);
  EXPECT_EQ(columns_of(pack_matrix(ctx_, view_of(big, {6, 50}).columns(3, 43), {}, GetParam())),
            transposed(part, 6));
}

TEST_P(PackedMatrixTest, StackedEqualsConcatenated) {
  std::vector<float> q = random_values(20 * 33, 3), k = random_values(3 * 33, 4),
                     v = random_values(30 * 33, 5);
  std::vector<float> all = q, bias = random_values(53, 6);
  all.insert(all.end(), k.begin(), k.end()), all.insert(all.end(), v.begin(), v.end());
  const std::array parts = {view_of(q, {20, 33}), view_of(k, {3, 33}), view_of(v, {30, 33})};
  const PackedMatrix stacked = pack_stacked(ctx_, parts, view_of(bias, {53}), GetParam());
  EXPECT_EQ(stacked.outputs, 53);
  EXPECT_EQ(columns_of(stacked), columns_of(pack(all, {53, 33}, bias, GetParam())));
}

TEST_P(PackedMatrixTest, TapsOfRankThreeAreTheConvolutionsTaps) {
  std::vector<float> w = random_values(9 * 70 * 3, 7), taps_first(w.size());  // [out, in, k] and [out, k, in]
  for (size_t n = 0; n < 9; ++n)
    for (size_t c = 0; c < 70; ++c)
      for (size_t j = 0; j < 3; ++j) taps_first[(n * 3 + j) * 70 + c] = w[(n * 70 + c) * 3 + j];
  const PackedMatrix a = pack_conv1d(ctx_, view_of(w, {9, 70, 3}), {}, GetParam());
  const PackedMatrix b = pack_matrix(ctx_, view_of(taps_first, {9, 3, 70}), {}, GetParam());
  EXPECT_EQ(a.taps, 3);
  EXPECT_EQ(a.depth, 70);
  ASSERT_EQ(a.storage.bytes(), b.storage.bytes());
  EXPECT_EQ(
      std::memcmp(a.storage.view().data(), b.storage.view().data(), static_cast<size_t>(a.storage.bytes())),
      0);
}

TEST_P(PackedMatrixTest, ATeamAndOneThreadPackTheSame) {
  std::vector<float> w = random_values(300 * 90, 8), no_bias;
  const PackedMatrix many = pack(w, {300, 90}, no_bias, GetParam());
  ThreadTeam one(1);
  Context alone{.device = {}, .team = &one, .workspace = &workspace_};
  const PackedMatrix single = pack_matrix(alone, view_of(w, {300, 90}), {}, GetParam());
  EXPECT_EQ(std::memcmp(many.storage.view().data(), single.storage.view().data(),
                        static_cast<size_t>(many.storage.bytes())),
            0);
}

TEST_P(PackedMatrixTest, FewChannelsNeedLittlePadding) {
  for (const int64_t channels : {1, 16, 20, 40}) {
    std::vector<float> w(static_cast<size_t>(16 * channels * 7), 1.0f);
    const PackedMatrix packed = pack_conv1d(ctx_, view_of(w, {16, channels, 7}), {}, GetParam());
    const int64_t used = 16 * channels * 7 * size_of(GetParam());
    EXPECT_LE(packed.storage.bytes(), used + 16 * 31 * size_of(GetParam())) << channels;
  }
}

// Of every form, with outputs and depths that are padded, and taps that are folded into the depth.
TEST_P(PackedMatrixTest, OfWeightsWithoutMemoryItTakesWhatItWouldTake) {
  const DType dtype = GetParam();
  const auto compare = [&](const auto& pack) {
    const PackedMatrix real = pack(false), sized = pack(true);
    EXPECT_TRUE(sized.storage.view().is_sized_only());
    EXPECT_EQ(sized.bytes(), real.bytes());
    EXPECT_EQ(sized.outputs, real.outputs);
    EXPECT_EQ(sized.taps, real.taps);
    EXPECT_EQ(sized.depth, real.depth);
  };
  const auto tensor = [](bool sized, const Shape& shape) {
    return sized ? Tensor::sized(DType::f32, shape) : Tensor::zeros(DType::f32, shape);
  };
  compare([&](bool sized) {
    const Tensor w = tensor(sized, {19, 45}), bias = tensor(sized, {19});
    return pack_matrix(ctx_, w, bias, dtype);
  });
  compare([&](bool sized) {
    const Tensor w = tensor(sized, {19, 45});
    const std::array parts = {w.view().slice(3, 7), w.view().slice(0, 19)};
    return pack_stacked(ctx_, parts, {}, dtype);
  });
  compare([&](bool sized) {
    const Tensor gate = tensor(sized, {33, 64}), up = tensor(sized, {33, 64});
    return pack_gate_up(ctx_, gate, up, dtype);
  });
  for (const int64_t channels : {1, 5, 70}) {
    compare([&](bool sized) {
      const Tensor w = tensor(sized, {17, channels, 6}), bias = tensor(sized, {17});
      return pack_strided_conv1d(ctx_, w, bias, 3, dtype);
    });
    compare([&](bool sized) {
      const Tensor w = tensor(sized, {channels, 9, 6}), bias = tensor(sized, {9});
      return pack_transposed_conv1d(ctx_, w, bias, 2, dtype);
    });
  }
}

TEST_P(PackedMatrixTest, RefusesUnsupportedTensors) {
  std::vector<float> w(12), bias(5);
  std::vector<int8_t> bytes(12);
  EXPECT_THROW(pack_matrix(ctx_, view_of(w, {3, 4}), view_of(bias, {5}), GetParam()), Error);
  EXPECT_THROW(pack_matrix(ctx_, view_of(w, {12}), {}, GetParam()), Error);
  EXPECT_THROW(pack_matrix(ctx_, view_of(w, {3, 4}), {}, DType::f16), Error);
  EXPECT_THROW(pack_matrix(ctx_, TensorView::of(bytes.data(), DType::i8, {3, 4}), {}, GetParam()), Error);
  EXPECT_THROW(pack_matrix(ctx_, view_of(w, {3, 4}).slice(0, 0), {}, GetParam()), Error);
  EXPECT_THROW(pack_gate_up(ctx_, view_of(w, {3, 4}), view_of(w, {4, 3}), GetParam()), Error);
  EXPECT_THROW(pack_strided_conv1d(ctx_, view_of(w, {2, 2, 3}), {}, 2, GetParam()), Error);
  EXPECT_THROW(pack_transposed_conv1d(ctx_, view_of(w, {2, 2, 3}), {}, 0, GetParam()), Error);
  const std::array mixed = {view_of(w, {3, 4}), view_of(w, {4, 3})};
  EXPECT_THROW(pack_stacked(ctx_, mixed, {}, GetParam()), Error);
}

TEST_P(PackedMatrixTest, HoldsItsFormat) {
  std::vector<float> w(12), no_bias;
  EXPECT_EQ(pack(w, {3, 4}, no_bias, GetParam()).format, MatrixFormat(GetParam()));
}

TEST_P(PackedMatrixTest, RefusesAFormatThatNoKernelMultipliesByBothOfItsNames) {
  std::vector<float> w(12);
  for (const DType other : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    if (other == GetParam()) continue;
    for (const MatrixFormat format : {MatrixFormat(GetParam(), other), MatrixFormat(other, GetParam())}) {
      try {
        pack_matrix(ctx_, view_of(w, {3, 4}), {}, format);
        ADD_FAILURE() << name_of(format.weights) << " times " << name_of(format.operand) << " is packed";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
        EXPECT_NE(error.message().find(concat("weights in ", name_of(format.weights))), std::string::npos);
        EXPECT_NE(error.message().find(concat("operands in ", name_of(format.operand))), std::string::npos);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, PackedMatrixTest, testing::Values(DType::f32, DType::bf16),
                         [](const testing::TestParamInfo<DType>& dtype) {
                           return std::string(name_of(dtype.param));
                         });

TEST(CpuFeatures, NamesAndLimits) {
  for (const CpuIsa isa : {CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx})
    EXPECT_EQ(parse_cpu_isa(name_of(isa)), isa);
  EXPECT_EQ(parse_cpu_isa("sse9"), std::nullopt);
  EXPECT_LE(cpu_isa(), best_cpu_isa());
  if (best_cpu_isa() == CpuIsa::amx) GTEST_SKIP() << "nothing is above the best";
  EXPECT_THROW(set_cpu_isa(CpuIsa::amx), Error);
}

}  // namespace
}  // namespace shoal::ops
