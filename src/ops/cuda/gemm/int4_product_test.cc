// Weights of 4 bits give the bits of 16-bit weights that were rounded to the same values before, by every
// kernel.
#include "base/f16.h"
#include "ops/cuda/gemm/narrow_product_testing.h"
#include "ops/round_weights.h"

namespace shoal::ops::cuda {
namespace {

// The nearest number of the dtype (ties to even): rounded once.
float nearest(double value, DType dtype) {
  if (value == 0) return 0;
  const bool half = dtype == DType::f16;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - (half ? 11 : 8), half ? -24 : -133));
  return static_cast<float>(std::nearbyint(value / unit) * unit);
}

struct Int4Case {
  DType operand;
  int64_t group;
};

void PrintTo(const Int4Case& tested, std::ostream* out) {
  *out << name_of(tested.operand) << " in groups of " << tested.group;
}

// What round_to_int4 makes of weights, and the same values in 16 bits.
struct Rounded {
  Rounded(std::vector<float>& w, int64_t outputs, int64_t inputs, const Int4Case& tested)
      : depth(inputs),
        nibbles(DType::u8, {outputs, (depth + 1) / 2}),
        scales(DType::bf16, {outputs, (depth + tested.group - 1) / tested.group}),
        minima(DType::bf16, scales.shape()) {
    ThreadTeam team(2);
    round_to_int4(team, view_of(w, {outputs, depth}), tested.group, {nibbles, scales, minima});
    const auto bytes = nibbles.span<uint8_t>();
    values = values_of(ref::int4_weights({bytes.begin(), bytes.end()}, numbers(scales, tested.operand),
                                         numbers(minima, tested.operand), depth, tested.group),
                       tested.operand);
  }
  // As what is multiplied keeps them.
  static ref::Values numbers(const Tensor& of, DType operand) {
    ref::Values wide;
    for (const Bf16 value : of.span<Bf16>()) wide.push_back(nearest(bf16_to_float(value), operand));
    return wide;
  }
  static std::vector<float> values_of(const ref::Values& wide, DType operand) {
    std::vector<float> narrow;
    for (const double value : wide) narrow.push_back(nearest(value, operand));
    return narrow;
  }
  StoredMatrix stored() const { return {nibbles, scales, minima, depth}; }

  int64_t depth;
  Tensor nibbles, scales, minima;
  std::vector<float> values;
};

class Int4Weights : public NarrowProducts, public testing::WithParamInterface<Int4Case> {
 protected:
  static DType operand() { return GetParam().operand; }
  static MatrixFormat int4() { return {DType::u4, operand(), GetParam().group}; }
  static std::vector<float> weights(int64_t outputs, int64_t depth, unsigned seed) {
    std::vector<float> w = random_values(outputs * depth, seed, 0.3f);
    for (size_t i = 0; i < w.size(); i += 3) w[i] += 0.2f;  // minima are not what scales are
    return w;
  }
  static Rounded rounded(std::vector<float>& w, int64_t outputs, int64_t depth) {
    return {w, outputs, depth, GetParam()};
  }

  Both pack(int64_t outputs, int64_t depth, bool with_bias) {
    std::vector<float> w = weights(outputs, depth, 2), same = rounded(w, outputs, depth).values,
                       bias = random_values(outputs, 3);
    const TensorView b = with_bias ? view_of(bias, {outputs}) : TensorView{};
    return {pack_matrix(ctx(), view_of(w, {outputs, depth}), b, int4()),
            pack_matrix(ctx(), view_of(same, {outputs, depth}), b, operand())};
  }
  Both pack_pair(int64_t hidden, int64_t depth) {
    std::vector<float> gate = weights(hidden, depth, 4), up = weights(hidden, depth, 5),
                       same_gate = rounded(gate, hidden, depth).values,
                       same_up = rounded(up, hidden, depth).values;
    const Shape shape{hidden, depth};
    return {pack_gate_up(ctx(), view_of(gate, shape), view_of(up, shape), int4()),
            pack_gate_up(ctx(), view_of(same_gate, shape), view_of(same_up, shape), operand())};
  }
};

// Depths that end within a tile, a group or a pair of inputs; segments of one tile, and such as begin within
// a group; matrices that stream.
TEST_P(Int4Weights, GiveTheBitsOfTheSameValuesIn16Bits) {
  for (const auto& [outputs, depth] : std::vector<std::pair<int64_t, int64_t>>{{8, 16},
                                                                               {9, 40},
                                                                               {5, 77},
                                                                               {72, 520},
                                                                               {1024, 3072},
                                                                               {4096, 1024},
                                                                               {136, 2560},
                                                                               {17, 9736},
                                                                               {24, 16384}}) {
    SCOPED_TRACE(testing::Message() << outputs << " x " << depth);
    expect_same_products(pack(outputs, depth, outputs % 8 != 0), operand());
  }
}

TEST_P(Int4Weights, OfPairsAndBehindNormsToo) {
  for (const auto& [hidden, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{40, 40}, {1100, 136}, {3072, 1024}, {9728, 2560}}) {
    const bool streams = hidden > 8192;
    if (streams && GetParam().group != 64) continue;
    expect_same_pairs(pack_pair(hidden, depth), hidden, depth, streams ? 17 : 300);
  }
}

TEST_P(Int4Weights, OntoAResidualStreamToo) {
  expect_same_residuals(pack(1024, 2048, false), pack(256, 1024, false), 1024, operand());
}

// One input at a time is 1, so that the products are the weights.
TEST_P(Int4Weights, AreMinimumPlusScaleTimesInteger) {
  constexpr int64_t kOutputs = 19, kDepth = 296;
  std::vector<float> w = weights(kOutputs, kDepth, 2), unit(kDepth * kDepth), want(kDepth * kOutputs);
  std::fill_n(w.begin(), 64, 0.5f);  // a group without a range
  const Rounded made = rounded(w, kOutputs, kDepth);
  for (size_t k = 0; k < kDepth; ++k) {
    unit[k * kDepth + k] = 1;
    for (size_t n = 0; n < kOutputs; ++n) want[k * kOutputs + n] = made.values[n * kDepth + k];
  }
  const PackedMatrix packed = pack_matrix(ctx(), made.stored(), {}, int4());
  const Tensor x = put(unit, {kDepth, kDepth}), y = garbage({kDepth, kOutputs});
  linear(ctx(), x, packed, y);
  EXPECT_EQ(get(y), want);
  for (int64_t k = 0; k < kDepth; k += 8)
    linear(ctx(), x.view().slice(k, k + 8), packed, y.view().slice(k, k + 8));
  EXPECT_EQ(get(y), want);
}

// Both ways to the same bytes on the device, of parts whose rows are strided too.
TEST_P(Int4Weights, MayBeRoundedAhead) {
  const auto bytes_of = [](const PackedMatrix& packed) {
    const Tensor host(DType::u8, packed.storage.shape());
    copy(packed.storage, host);
    const auto bytes = host.span<uint8_t>();
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  };
  for (const auto& [outputs, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{9, 40}, {72, 520}, {17, 9736}}) {
    std::vector<float> w = weights(outputs, depth, 2);
    std::fill_n(w.begin(), depth, 0.0f);
    const Rounded ahead = rounded(w, outputs, depth);
    const TensorView now = view_of(w, {outputs, depth});
    std::vector<float> broad(static_cast<size_t>(outputs * (depth + 3)));
    for (size_t n = 0; n < static_cast<size_t>(outputs); ++n)
      std::copy_n(&w[n * static_cast<size_t>(depth)], depth, &broad[n * static_cast<size_t>(depth + 3) + 2]);
    const TensorView strided = view_of(broad, {outputs, depth + 3}).columns(2, depth + 2);
    const std::vector<uint8_t> one = bytes_of(pack_matrix(ctx(), ahead.stored(), {}, int4()));
    EXPECT_EQ(bytes_of(pack_matrix(ctx(), now, {}, int4())), one) << outputs;
    EXPECT_EQ(bytes_of(pack_matrix(ctx(), strided, {}, int4())), one) << outputs;
    EXPECT_EQ(bytes_of(pack_gate_up(ctx(), ahead.stored(), ahead.stored(), int4())),
              bytes_of(pack_gate_up(ctx(), now, strided, int4())));
    EXPECT_EQ(bytes_of(pack_stacked(ctx(), std::array{ahead.stored(), ahead.stored()}, {}, int4())),
              bytes_of(pack_stacked(ctx(), std::array{now, strided}, {}, int4())));
  }
}

TEST_P(Int4Weights, TakeHalfAByteAndFourBytesAGroup) {
  const Both both = pack(1024, 1024, false);
  EXPECT_EQ(both.narrow.bytes(), 1024 * 1024 / 2 + 1024 * 1024 / GetParam().group * 4);
  const Tensor sized = Tensor::sized(DType::f32, {1024, 1024});
  EXPECT_EQ(pack_matrix(ctx(), sized, {}, int4()).bytes(), both.narrow.bytes());
  EXPECT_EQ(pack_gate_up(ctx(), sized, sized, int4()).bytes(), 2 * both.narrow.bytes());
}

TEST_P(Int4Weights, AreRefusedIfTheyAreNotFiniteOrInOtherGroups) {
  std::vector<float> w = weights(8, 256, 2);
  const Rounded made = rounded(w, 8, 256);
  const auto code_of = [&](const StoredMatrix& matrix, MatrixFormat format) {
    try {
      pack_matrix(ctx(), matrix, {}, format);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  const int64_t other = GetParam().group == 32 ? 64 : 32;
  EXPECT_EQ(code_of(made.stored(), {DType::u4, operand(), other}), ErrorCode::unsupported);
  EXPECT_EQ(code_of(made.stored(), operand()), ErrorCode::unsupported);
  EXPECT_EQ(code_of(made.stored(), {DType::u4, DType::f32, GetParam().group}), ErrorCode::unsupported);
  w[300] = NAN;
  EXPECT_EQ(code_of(view_of(w, {8, 256}), int4()), ErrorCode::corrupt_file);
}

std::vector<Int4Case> int4_cases() {
  std::vector<Int4Case> cases;
  for (const DType operand : {DType::bf16, DType::f16})
    for (const int64_t group : {32, 64, 128}) cases.push_back({operand, group});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(HalfFloats, Int4Weights, testing::ValuesIn(int4_cases()), [](const auto& suite) {
  return std::string(name_of(suite.param.operand)) + "_" + std::to_string(suite.param.group);
});

}  // namespace
}  // namespace shoal::ops::cuda
