#include <array>
#include <cstring>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/matrix_testing.h"
#include "ops/packed_matrix.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

// w[part][n][tap][k] as the matrix should hold it.
using Element = FunctionRef<float(int64_t part, int64_t n, int64_t tap, int64_t k)>;

class CudaPack : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  std::vector<float> stored(const Tensor& storage) {
    return get(
        TensorView(storage.view().data(), GetParam(), {storage.bytes() / size_of(GetParam())}, kDevice));
  }

  // Every element lies where matrix_layout.cuh says, rounded; all else is zero.
  void expect_packed(const PackedMatrix& packed, bool paired, Element element) {
    const MatrixShape shape = shape_of(packed, paired);
    const bool tiles = GetParam() != DType::f32;
    ASSERT_EQ(packed.storage.bytes(), tiles ? shape.bytes() : f32_bytes(shape));
    EXPECT_EQ(packed.storage.view().device(), kDevice);
    std::vector<float> values;
    std::vector<int64_t> places;
    for (int64_t part = 0; part < (paired ? 2 : 1); ++part)
      for (int64_t n = 0; n < shape.outputs; ++n)
        for (int64_t tap = 0; tap < shape.taps; ++tap)
          for (int64_t k = 0; k < shape.depth; ++k) {
            values.push_back(element(part, n, tap, k));
            places.push_back(tiles ? element_index(shape, part, n, tap, k)
                                   : f32_index(shape, part, n, tap, k));
          }
    std::vector<float> want(static_cast<size_t>(packed.storage.bytes() / size_of(GetParam())));
    const std::vector<float> rounded = rounded_to(values, GetParam());
    for (size_t i = 0; i < values.size(); ++i) want[static_cast<size_t>(places[i])] = rounded[i];
    expect_same_bits(stored(packed.storage), want);
  }
};

float at(const std::vector<float>& values, int64_t i) { return values[static_cast<size_t>(i)]; }

TEST_P(CudaPack, PacksMatricesOfAwkwardSizes) {
  for (const auto [outputs, depth] :
       {std::array<int64_t, 2>{1, 1}, {8, 32}, {12, 40}, {17, 1000}, {700, 1100}}) {
    SCOPED_TRACE(testing::Message() << outputs << " x " << depth);
    std::vector<float> w = random_values(outputs * depth, 1);
    const PackedMatrix packed = pack_matrix(ctx(), view_of(w, {outputs, depth}), {}, GetParam());
    expect_packed(packed, false,
                  [&, d = depth](int64_t, int64_t n, int64_t, int64_t k) { return at(w, n * d + k); });
  }
}

TEST_P(CudaPack, ReadsSixteenBitSources) {
  std::vector<float> w = random_values(20 * 45, 2);
  for (const DType source : {DType::bf16, DType::f16}) {
    const std::vector<float> rounded = rounded_to(w, source);
    const Tensor narrow = to_host(ctx(), put(w, {20, 45}, source));
    expect_packed(pack_matrix(ctx(), narrow, {}, GetParam()), false,
                  [&](int64_t, int64_t n, int64_t, int64_t k) { return at(rounded, n * 45 + k); });
  }
}

TEST_P(CudaPack, RoundsToNearestEvenAndKeepsInfinities) {
  // Halfway between two bf16 and two f16: towards the even one, up and down.
  std::vector<float> w = {1.00390625f, 1.01171875f, 1.00048828125f, 1.00146484375f,
                          -0.0f,       INFINITY,    -INFINITY,      1e-41f};
  expect_packed(pack_matrix(ctx(), view_of(w, {1, 8}), {}, GetParam()), false,
                [&](int64_t, int64_t, int64_t, int64_t k) { return at(w, k); });
}

TEST_P(CudaPack, PacksColumnsOfALargerMatrix) {
  std::vector<float> big = random_values(6 * 50, 3);
  expect_packed(pack_matrix(ctx(), view_of(big, {6, 50}).columns(3, 43), {}, GetParam()), false,
                [&](int64_t, int64_t n, int64_t, int64_t k) { return at(big, n * 50 + 3 + k); });
}

TEST_P(CudaPack, StackedPartsShareTilesAndHaveTheirBias) {
  std::vector<float> q = random_values(20 * 33, 4), k = random_values(3 * 33, 5),
                     v = random_values(30 * 33, 6);
  std::vector<float> all = q, bias = random_values(53, 7);
  all.insert(all.end(), k.begin(), k.end()), all.insert(all.end(), v.begin(), v.end());
  const std::array parts = {view_of(q, {20, 33}), view_of(k, {3, 33}), view_of(v, {30, 33})};
  const PackedMatrix packed = pack_stacked(ctx(), parts, view_of(bias, {53}), GetParam());
  expect_packed(packed, false, [&](int64_t, int64_t n, int64_t, int64_t i) { return at(all, n * 33 + i); });
  EXPECT_EQ(packed.bias.view().device(), kDevice);
  expect_same_bits(get(packed.bias), bias);
}

TEST_P(CudaPack, GateAndUpAlternateByRowOfTiles) {
  std::vector<float> gate = random_values(13 * 40, 8), up = random_values(13 * 40, 9);
  expect_packed(
      pack_gate_up(ctx(), view_of(gate, {13, 40}), view_of(up, {13, 40}), GetParam()), true,
      [&](int64_t part, int64_t n, int64_t, int64_t k) { return at(part ? up : gate, n * 40 + k); });
}

TEST_P(CudaPack, PacksConvolutionsTapByTap) {
  std::vector<float> w = random_values(9 * 70 * 6, 10);  // [out, in, kernel] or [in, out, kernel]
  const TensorView weight = view_of(w, {9, 70, 6});
  expect_packed(pack_conv1d(ctx(), weight, {}, GetParam()), false,
                [&](int64_t, int64_t n, int64_t tap, int64_t k) { return at(w, (n * 70 + k) * 6 + tap); });
  // Stride 2: input (phase, channel) of tap j is kernel position 2 j + phase.
  expect_packed(pack_strided_conv1d(ctx(), weight, {}, 2, GetParam()), false,
                [&](int64_t, int64_t n, int64_t tap, int64_t k) {
                  return at(w, (n * 70 + k % 70) * 6 + tap * 2 + k / 70);
                });
  // Transposed, stride 2: output (phase, channel) sees the input of the oldest of three taps through kernel
  // position 4 + phase.
  expect_packed(pack_transposed_conv1d(ctx(), weight, {}, 2, GetParam()), false,
                [&](int64_t, int64_t n, int64_t tap, int64_t k) {
                  return at(w, (k * 70 + n % 70) * 6 + (2 - tap) * 2 + n / 70);
                });
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaPack, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const testing::TestParamInfo<DType>& dtype) {
                           return std::string(name_of(dtype.param));
                         });

}  // namespace
}  // namespace shoal::ops::cuda
