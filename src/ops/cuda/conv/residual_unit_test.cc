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

struct UnitCase {
  DType dtype;
  UnitKernel kernel;
};

// Every kernel that the GPU can run is tested, whichever would be chosen.
class CudaResidualUnit : public ConvTestOf<CudaTest>, public testing::WithParamInterface<UnitCase> {
 protected:
  static DType dtype() { return GetParam().dtype; }
  static UnitKernel kernel() { return GetParam().kernel; }

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
    return pack_conv1d(ctx(), view_of(w, {channels, channels, taps}), view_of(bias, {channels}), dtype());
  }
  Unit random_unit(int64_t channels, int64_t dilation) {
    return {channels,
            dilation,
            random_conv(channels, 7, 21),
            random_conv(channels, 1, 23),
            put(random_alphas(channels, 25), {channels}),
            put(random_alphas(channels, 26), {channels})};
  }
  bool can_do(const Unit& unit) { return cuda::can_do(kernel(), unit.convs(), machine_of(ctx())); }

  Rows random_rows(std::initializer_list<int64_t> counts, int64_t channels, unsigned seed) {
    Rows xs;
    for (const int64_t count : counts) xs.push_back(random_values(count * channels, seed++));
    return xs;
  }

  static ConvInput input_of(const Sequences& s, const Unit& unit) {
    return {s.x, s.rows(), s.history(), unit.wide_alpha};
  }
  // As one kernel; the histories are read and replaced.
  Rows run_at_once(const Unit& unit, const Rows& xs, Rows& histories, int64_t history_offset = kAligned) {
    const Sequences s = place(xs, histories, unit.channels, 6 * unit.dilation, history_offset);
    const Tensor y = put(std::vector<float>(static_cast<size_t>(s.x.elements()), NAN), s.x.shape());
    residual_unit_at_once(ctx(), kernel(), input_of(s, unit), unit.convs(), y);
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
  // A convolution of two taps behind the unit, over `stride` rows side by side.
  struct Reader {
    int64_t stride;
    PackedMatrix weight;
    Tensor alpha;
  };
  static constexpr int64_t kReaderOutputs = 40;

  Reader random_reader(int64_t channels, int64_t stride) {
    const int64_t depth = stride * channels;
    std::vector<float> w = random_values(kReaderOutputs * depth * 2, 81, 0.1f),
                       bias = random_values(kReaderOutputs, 82);
    const std::vector<float> alpha = random_alphas(channels, 83);
    std::vector<float> tiled;
    for (int64_t i = 0; i < stride; ++i) append(tiled, alpha);
    return {
        stride,
        pack_conv1d(ctx(), view_of(w, {kReaderOutputs, depth, 2}), view_of(bias, {kReaderOutputs}), dtype()),
        put(tiled, {depth})};
  }

  struct Histories {
    Rows of_unit, of_reader;
  };
  // What the reader makes of the unit's rows: of ready ones, or of f32 rows.
  Rows read(const Unit& unit, const Reader& reader, const Rows& xs, Histories& histories, bool ready) {
    const int64_t depth = reader.stride * unit.channels;
    const Sequences s = place(xs, histories.of_unit, unit.channels, 6 * unit.dilation);
    const Sequences read = place(xs, histories.of_reader, depth, 1);
    const int64_t rows = s.x.dim(0), room = std::ssize(xs) * reader.stride;
    Tensor between;
    if (ready) {
      const ConvReader next{&reader.weight, reader.alpha.view().slice(0, unit.channels), reader.stride};
      between = put(std::vector<float>(static_cast<size_t>((rows + room) * unit.channels), NAN),
                    {rows + room, unit.channels}, dtype());
      ready_unit_at_once(ctx(), kernel(), input_of(s, unit), unit.convs(), next, between);
    } else {
      between = put(std::vector<float>(static_cast<size_t>(s.x.elements()), NAN), s.x.shape());
      residual_unit_at_once(ctx(), kernel(), input_of(s, unit), unit.convs(), between);
    }
    const Tensor y = put(std::vector<float>(static_cast<size_t>(rows / reader.stride * kReaderOutputs), NAN),
                         {rows / reader.stride, kReaderOutputs});
    causal_conv1d(ctx(),
                  {between.view().reshape({between.elements() / depth, depth}), read.rows(), read.history(),
                   reader.alpha},
                  reader.weight, 1, y);
    take(s, histories.of_unit);
    take(read, histories.of_reader);
    return apart(read, get(y), kReaderOutputs);
  }
  static Rows rounded(Rows rows) {
    for (std::vector<float>& values : rows) values = rounded_to(values, dtype());
    return rows;
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
      if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
      Rows histories, want_histories;
      // The second call finds the history of the first. More pieces than there are blocks; none; one row.
      const int64_t many = std::max<int64_t>(20000, 60000 * 64 / channels);
      for (const unsigned seed : {31u, 41u}) {
        const Rows xs = random_rows({1, 0, 128, 129, many, 700, 50}, channels, seed);
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
    if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
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

// The second call finds the histories of the first.
TEST_P(CudaResidualUnit, ReadyRowsGiveTheReaderTheBitsOfF32Rows) {
  for (const int64_t channels : {64, 128, 192, 256, 384}) {
    for (const int64_t stride : {1, 2}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << stride << " rows side by side");
      const Unit unit = random_unit(channels, 3);
      if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
      const Reader reader = random_reader(channels, stride);
      Histories histories, want_histories;
      for (const unsigned seed : {31u, 41u}) {
        const Rows xs = random_rows({2, 0, 128, 130, 9000, 700, 50}, channels, seed);
        const Rows want = read(unit, reader, xs, want_histories, false);
        expect_same(read(unit, reader, xs, histories, true), want);
        expect_same(histories.of_unit, want_histories.of_unit);
        expect_same(rounded(histories.of_reader), rounded(want_histories.of_reader));
      }
    }
  }
}

TEST_P(CudaResidualUnit, HistoriesMayLieAnywhereInMemory) {
  for (const int64_t channels : {96, 384}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const Unit unit = random_unit(channels, 3);
    if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
    Rows histories = random_rows({18, 18}, channels, 51), same = histories;
    const Rows xs = random_rows({200, 5}, channels, 61);
    const Rows want = run_in_place(unit, xs, same);
    expect_same(run_at_once(unit, xs, histories, kUnaligned), want);
    expect_same(histories, same);
  }
}

// Sequences shorter than what they look back at, and none but such: every piece is of another one.
TEST_P(CudaResidualUnit, SequencesShorterThanTheirLookBack) {
  for (const int64_t channels : {64, 96, 128, 192, 256, 384}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const Unit unit = random_unit(channels, 9);
    if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
    const std::initializer_list<int64_t> counts = {0, 3, 53, 0, 0, 54, 1, 7, 2, 0};
    Rows histories = random_rows({54, 54, 54, 54, 54, 54, 54, 54, 54, 54}, channels, 55), same = histories;
    for (const unsigned seed : {31u, 51u}) {
      const Rows xs = random_rows(counts, channels, seed);
      const Rows want = run_in_place(unit, xs, same);
      expect_same(run_at_once(unit, xs, histories), want);
      expect_same(histories, same);
    }
  }
}

// The GPU's own choice.
TEST_P(CudaResidualUnit, RowsAreMadeReadyOnlyWhereTheReaderTakesThem) {
  const Unit unit = random_unit(192, 1), narrow = random_unit(96, 1);
  if (!can_do(unit)) GTEST_SKIP() << "no such kernel for this GPU";
  const Reader reader = random_reader(192, 1), of_narrow = random_reader(96, 1);
  std::vector<float> w = random_values(192, 5);
  const PackedMatrix exact = pack_conv1d(ctx(), view_of(w, {1, 192, 1}), {}, DType::f32);
  EXPECT_TRUE(makes_ready(ctx(), unit.convs(), 8192, {&reader.weight, reader.alpha, 1}));
  EXPECT_FALSE(makes_ready(ctx(), unit.convs(), 100, {&reader.weight, reader.alpha, 1}));
  EXPECT_FALSE(makes_ready(ctx(), unit.convs(), 8192, {&exact, reader.alpha, 0}));
  EXPECT_FALSE(makes_ready(ctx(), narrow.convs(), 8192, {&of_narrow.weight, of_narrow.alpha, 1}));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaResidualUnit,
                         testing::Values(UnitCase{DType::bf16, UnitKernel::wgmma},
                                         UnitCase{DType::f16, UnitKernel::wgmma},
                                         UnitCase{DType::bf16, UnitKernel::mma},
                                         UnitCase{DType::f16, UnitKernel::mma}),
                         [](const auto& tested) {
                           return std::string(name_of(tested.param.dtype)) +
                                  (tested.param.kernel == UnitKernel::wgmma ? "_wgmma" : "_mma");
                         });

}  // namespace
}  // namespace shoal::ops::cuda
