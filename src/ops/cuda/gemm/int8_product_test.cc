// Weights of 8 bits give the bits of 16-bit weights that were rounded to the same values before, by every
// kernel.
#include "base/f16.h"
#include "ops/cuda/gemm/narrow_product_testing.h"
#include "ops/round_weights.h"

namespace shoal::ops::cuda {
namespace {

float rounded_as(DType dtype, float value) {
  return dtype == DType::f16 ? f16_to_float(float_to_f16(value)) : round_to_bf16(value);
}

// What 8 bits make of weights [outputs, depth].
std::vector<float> as_integers(const std::vector<float>& w, int64_t depth, DType operand) {
  std::vector<float> rounded;
  for (size_t row = 0; row < w.size(); row += static_cast<size_t>(depth)) {
    float largest = 0;
    for (int64_t k = 0; k < depth; ++k)
      largest = std::max(largest, std::abs(w[row + static_cast<size_t>(k)]));
    const float scale = rounded_as(operand, largest / 127.0f), factor = 127.0f / largest;
    for (int64_t k = 0; k < depth; ++k)
      rounded.push_back(
          rounded_as(operand, std::nearbyint(w[row + static_cast<size_t>(k)] * factor) * scale));
  }
  return rounded;
}

class Int8Weights : public NarrowProducts, public testing::WithParamInterface<DType> {
 protected:
  static DType operand() { return GetParam(); }
  MatrixFormat int8() const { return {DType::i8, operand()}; }

  Both pack(int64_t outputs, int64_t depth, bool with_bias) {
    std::vector<float> w = random_values(outputs * depth, 2, 0.3f), same = as_integers(w, depth, operand());
    std::vector<float> bias = random_values(outputs, 3);
    const TensorView b = with_bias ? view_of(bias, {outputs}) : TensorView{};
    return {pack_matrix(ctx(), view_of(w, {outputs, depth}), b, int8()),
            pack_matrix(ctx(), view_of(same, {outputs, depth}), b, operand())};
  }
  Both pack_pair(int64_t hidden, int64_t depth) {
    std::vector<float> gate = random_values(hidden * depth, 4, 0.3f),
                       up = random_values(hidden * depth, 5, 0.3f),
                       same_gate = as_integers(gate, depth, operand()),
                       same_up = as_integers(up, depth, operand());
    const Shape shape{hidden, depth};
    return {pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), int8()),
            pack_gate_up(ctx(), view_of(same_gate, shape), view_of(same_up, shape), operand())};
  }
};

TEST_P(Int8Weights, GiveTheBitsOfTheSameValuesIn16Bits) {
  for (const auto& [outputs, depth] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 16}, {9, 40}, {72, 520}, {1024, 2048}, {1024, 3072}, {4096, 1024}, {17, 9736}, {24, 16384}}) {
    SCOPED_TRACE(testing::Message() << outputs << " x " << depth);
    expect_same_products(pack(outputs, depth, outputs % 8 != 0), operand());
  }
}

TEST_P(Int8Weights, OfPairsAndBehindNormsToo) {
  for (const auto& [hidden, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{40, 40}, {1100, 136}, {3072, 1024}, {9728, 2560}}) {
    const bool streams = hidden > 8192;
    expect_same_pairs(pack_pair(hidden, depth), hidden, depth, streams ? 17 : 300);
  }
}

TEST_P(Int8Weights, OntoAResidualStreamToo) {
  expect_same_residuals(pack(1024, 2048, false), pack(256, 1024, false), 1024, operand());
}

// Both ways to the same bytes on the device.
TEST_P(Int8Weights, MayBeRoundedAhead) {
  ThreadTeam team(2);
  const auto host_bytes = [](const Tensor& tensor) {
    const Tensor host(tensor.dtype(), tensor.shape());
    copy(tensor, host);
    const auto* bytes = static_cast<const char*>(host.view().data());
    return std::vector<char>(bytes, bytes + host.bytes());
  };
  for (const auto& [outputs, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{9, 40}, {72, 520}, {17, 9736}}) {
    std::vector<float> w = random_values(outputs * depth, 2, 0.3f);
    std::fill_n(w.begin(), depth, 0.0f);
    const TensorView weight = view_of(w, {outputs, depth});
    const Tensor integers(DType::i8, {outputs, depth}), scales(DType::f32, {outputs});
    round_to_int8(team, weight, integers, scales);
    const StoredMatrix stored(integers, scales);
    for (const bool paired : {false, true}) {
      const auto pack = [&](const StoredMatrix& m) {
        return paired ? pack_gate_up(ctx(), m, m, int8()) : pack_matrix(ctx(), m, {}, int8());
      };
      const PackedMatrix ahead = pack(stored), now = pack(weight);
      EXPECT_EQ(host_bytes(ahead.storage), host_bytes(now.storage)) << outputs;
      EXPECT_EQ(host_bytes(ahead.scales), host_bytes(now.scales)) << outputs;
    }
  }
}

TEST_P(Int8Weights, TakeHalfTheMemory) {
  const Both both = pack(1024, 1024, false);
  EXPECT_EQ(both.narrow.storage.bytes() * 2, both.wide.storage.bytes());
  EXPECT_EQ(both.narrow.scales.bytes(), 4 * 1024);
  const Tensor sized = Tensor::sized(DType::f32, {1024, 1024});
  EXPECT_EQ(pack_matrix(ctx(), sized, {}, int8()).bytes(), both.narrow.bytes());
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, Int8Weights, testing::Values(DType::bf16, DType::f16),
                         [](const auto& suite) { return std::string(name_of(suite.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
