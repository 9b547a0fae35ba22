// Residual units in one kernel against the same done convolution by convolution, bit for bit.
#include "ops/cuda/conv/residual_unit.h"

#include "ops/conv1d_testing.h"
#include "ops/cuda/device/cuda_testing.h"

namespace shoal::ops::cuda {
namespace {

std::vector<float> random_alphas(int64_t channels, unsigned seed) {
  std::vector<float> alpha = random_values(channels, seed);
  for (float& a : alpha) a = std::abs(a) + 0.1f;
  return alpha;
}

class CudaResidualUnit : public ConvTestOf<CudaTest>, public testing::WithParamInterface<DType> {
 protected:
  // Both convolutions of a unit.
  struct Unit {
    int64_t channels, dilation;
    PackedMatrix wide, narrow;
    Tensor wide_alpha, narrow_alpha;

    ResidualConvs convs() const { return {&wide, dilation, &narrow, wide_alpha, narrow_alpha}; }
  };

  PackedMatrix random_conv(int64_t channels, int64_t taps, unsigned seed) {
    std::vector<float> w = random_values(channels * channels * taps, seed, 0.1f),
                       bias = random_values(channels, seed + 1);
    return pack_conv1d(ctx(), view_of(w, {channels, channels, taps}), view_of(bias, {channels}), GetParam());
  }
  Unit random_unit(int64_t channels, int64_t dilation) {
    return {channels,
            dilation,
            random_conv(channels, 7, 21),
            random_conv(channels, 1, 23),
            put(random_alphas(channels, 25), {channels}),
            put(random_alphas(channels, 26), {channels})};
  }

  Rows random_rows(std::initializer_list<int64_t> counts, int64_t channels, unsigned seed) {
    Rows xs;
    for (const int64_t count : counts) xs.push_back(random_values(count * channels, seed++));
    return xs;
  }

  // As one kernel; the histories are read and replaced.
  Rows run_at_once(const Unit& unit, const Rows& xs, Rows& histories, int64_t history_offset = kAligned) {
    const Sequences s = place(xs, histories, unit.channels, 6 * unit.dilation, history_offset);
    const Tensor y = put(std::vector<float>(static_cast<size_t>(s.x.elements()), NAN), s.x.shape());
    residual_unit_at_once(ctx(), s.x, s.rows(), s.history(), unit.convs(), y);
    take(s, histories);
    return apart(s, get(y), unit.channels);
  }
  // By the two products, in place.
  Rows run_in_place(const Unit& unit, const Rows& xs, Rows& histories) {
    const Sequences s = place(xs, histories, unit.channels, 6 * unit.dilation);
    residual_unit(ctx(), s.x, s.rows(), s.history(), unit.convs(), s.x);
    take(s, histories);
    return apart(s, get(s.x), unit.channels);
  }
  static void expect_same(const Rows& got, const Rows& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "sequence " << i);
      expect_same_bits(got[i], want[i]);
    }
  }
};

TEST_P(CudaResidualUnit, EqualsItsTwoConvolutions) {
  for (const int64_t channels : {64, 96, 128, 192, 256, 384}) {
    for (const int64_t dilation : {1, 3, 9}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, dilation " << dilation);
      const Unit unit = random_unit(channels, dilation);
      if (!has_unit_kernel(ctx(), unit.convs())) GTEST_SKIP() << "no such kernel for this GPU";
      Rows histories, want_histories;
      // The second call finds the history of the first. More pieces than multiprocessors; none; one row.
      for (const unsigned seed : {31u, 41u}) {
        const Rows xs = random_rows({1, 0, 128, 129, 20000, 700, 50}, channels, seed);
        const Rows want = run_in_place(unit, xs, want_histories);
        expect_same(run_at_once(unit, xs, histories), want);
        expect_same(histories, want_histories);
      }
    }
  }
}

// However a sequence is cut, whatever else is in the batch: pieces that begin at other rows, blocks that have
// other neighbours.
TEST_P(CudaResidualUnit, StreamedEqualsWholeAndAloneEqualsInABatch) {
  for (const int64_t channels : {64, 96, 128, 192, 256, 384}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const Unit unit = random_unit(channels, 9);
    if (!has_unit_kernel(ctx(), unit.convs())) GTEST_SKIP() << "no such kernel for this GPU";
    const Rows xs = random_rows({3000, 1, 777}, channels, 71);
    Rows histories, alone, streamed;
    const Rows want = run_at_once(unit, xs, histories);
    expect_same(run_at_once(unit, {xs[0]}, alone), {want[0]});
    std::vector<float> pieces;
    for (int64_t begin = 0, end; begin < 3000; begin = end) {
      end = std::min<int64_t>(3000, 2 * begin + 63);
      append(pieces, run_at_once(unit, {rows_of(xs[0], channels, begin, end)}, streamed)[0]);
    }
    expect_same({pieces}, {want[0]});
    expect_same(streamed, {histories[0]});
  }
}

TEST_P(CudaResidualUnit, HistoriesMayLieAnywhereInMemory) {
  const Unit unit = random_unit(384, 3);
  if (!has_unit_kernel(ctx(), unit.convs())) GTEST_SKIP() << "no such kernel for this GPU";
  Rows histories = random_rows({18, 18}, 384, 51), same = histories;
  const Rows xs = random_rows({200, 5}, 384, 61);
  const Rows want = run_in_place(unit, xs, same);
  expect_same(run_at_once(unit, xs, histories, kUnaligned), want);
  expect_same(histories, same);
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaResidualUnit, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
