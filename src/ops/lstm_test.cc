#include "ops/lstm.h"

#include "ops/lstm_testing.h"

namespace shoal::ops {
namespace {

using lstm_testing::columns;
using lstm_testing::Direction;
using lstm_testing::random_rows;
using lstm_testing::turned;
using Outputs = std::vector<std::vector<float>>;

Outputs run(Context& ctx, const Utterances& utterances, const Outputs& x, const PackedLstm& lstm,
            float garbage = 0) {
  const Segments segments = utterances.segments();
  std::vector<float> in = laid_out(x, segments, lstm.inputs, garbage);
  std::vector<float> out(static_cast<size_t>(segments.total_rows() * 2 * lstm.hidden), kNan);
  bidirectional_lstm(ctx, view_of(in, {segments.total_rows(), lstm.inputs}), segments, lstm,
                     view_of(out, {segments.total_rows(), 2 * lstm.hidden}));
  return taken_out(out, segments, 2 * lstm.hidden);
}

class LstmTest : public IsaTest {};

TEST_P(LstmTest, MatchesTheOracleAtAwkwardSizes) {
  for (const auto& [inputs, hidden] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 16}, {40, 24}, {70, 33}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Direction forward(inputs, hidden, 1), backward(inputs, hidden, 11);
      const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), dtype);
      const Utterances utterances({1, 2, 37}, 3);
      const Outputs x = random_rows(utterances.frames, inputs);
      const Outputs y = run(ctx_, utterances, x, lstm);
      for (size_t s = 0; s < x.size(); ++s) {
        const ref::Values rows = rounded(x[s], dtype);
        const ref::Bounded first = ref::lstm(rows, forward.oracle(dtype));
        const ref::Bounded second = ref::lstm(turned(rows, inputs), backward.oracle(dtype));
        expect_close(columns(y[s], 2 * hidden, 0, hidden), first.values, first.bounds);
        expect_close(columns(y[s], 2 * hidden, hidden, 2 * hidden), turned(second.values, hidden),
                     turned(second.bounds, hidden));
      }
    }
}

TEST_P(LstmTest, ASegmentIsTheSameInAnyBatchAndTeam) {
  Direction forward(6, 72, 1), backward(6, 72, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const std::vector<int32_t> lengths = {9, 1, 30, 30, 2, 17, 5, 64};
  const Outputs x = random_rows(lengths, 6);
  Outputs alone;
  for (size_t s = 0; s < x.size(); ++s)
    alone.push_back(run(ctx_, Utterances({lengths[s]}, 0), {x[s]}, lstm)[0]);
  for (const int threads : {1, 2, 5, 16})
    for (const int32_t gap : {0, 1, 12}) {
      ThreadTeam team(threads);
      Context ctx = ctx_;
      ctx.team = &team;
      const Outputs batch = run(ctx, Utterances(lengths, gap), x, lstm, kNan);
      for (size_t s = 0; s < x.size(); ++s) expect_same_bits(batch[s], alone[s]);
    }
}

TEST_P(LstmTest, HasTheSameBitsOnEveryInstructionSet) {
  Direction forward(20, 40, 1), backward(20, 40, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const Utterances utterances({25, 3, 40}, 2);
  const Outputs x = random_rows(utterances.frames, 20);
  const Outputs own = run(ctx_, utterances, x, lstm);
  set_cpu_isa(CpuIsa::portable);
  const Outputs plain = run(ctx_, utterances, x, lstm);
  for (size_t s = 0; s < x.size(); ++s) expect_same_bits(own[s], plain[s]);
}

TEST_P(LstmTest, DirectionsAreMirrorImages) {
  Direction forward(8, 20, 1), backward(8, 20, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const PackedLstm swapped = pack_lstm(ctx_, backward.view(), forward.view(), DType::f32);
  const Utterances utterances({31}, 1);
  const Outputs x = random_rows(utterances.frames, 8);
  const Outputs y = run(ctx_, utterances, x, lstm);
  const Outputs mirrored = run(ctx_, utterances, {turned(x[0], 8)}, swapped);
  expect_same_bits(columns(y[0], 40, 0, 20), turned(columns(mirrored[0], 40, 20, 40), 20));
  expect_same_bits(columns(y[0], 40, 20, 40), turned(columns(mirrored[0], 40, 0, 20), 20));
}

// Only sigmoid and tanh: utterances of one row, a gate that is the input, the other gates open.
TEST_P(LstmTest, ActivationsAreExactToAFewUlps) {
  constexpr int64_t kInput = 0, kForget = 1, kCandidate = 2, kOutput = 3;
  const Outputs x = [] {
    Outputs rows;
    for (int i = -2000; i <= 2000; ++i) rows.push_back({static_cast<float>(std::pow(i / 1000.0, 5))});
    return rows;
  }();
  const auto run_gate = [&](int64_t gate) {
    Direction direction(1, 1, 1);
    for (auto* weights : {&direction.weight_ih, &direction.weight_hh, &direction.bias_hh})
      std::ranges::fill(*weights, 0.0f);
    direction.bias_ih = {100, 100, 100, 100};
    direction.bias_ih[static_cast<size_t>(gate)] = 0;
    direction.weight_ih[static_cast<size_t>(gate)] = 1;
    const PackedLstm lstm = pack_lstm(ctx_, direction.view(), direction.view(), DType::f32);
    return run(ctx_, Utterances(std::vector<int32_t>(x.size(), 1), 0), x, lstm);
  };
  const Outputs tanhs = run_gate(kCandidate), sigmoids = run_gate(kOutput), inputs = run_gate(kInput);
  const Outputs forgets = run_gate(kForget);
  for (size_t s = 0; s < x.size(); ++s) {
    const double in = x[s][0], sigmoid = 1 / (1 + std::exp(-in));
    // A function errs by 3 units; of two of them the inner one's error is damped.
    const auto near = [](double want) {
      return testing::FloatNear(static_cast<float>(want), static_cast<float>(6 * kUnit * std::abs(want)));
    };
    ASSERT_THAT(tanhs[s][0], near(std::tanh(std::tanh(in)))) << in;
    ASSERT_THAT(sigmoids[s][0], near(sigmoid * std::tanh(1.0))) << in;
    ASSERT_THAT(inputs[s][1], near(std::tanh(sigmoid))) << in;
    ASSERT_EQ(forgets[s][0], forgets[0][0]) << "there is nothing to forget";
  }
}

// Gates far beyond the range of exp: cells keep, forget and saturate without a NaN.
TEST_P(LstmTest, SaturatedGatesStayFinite) {
  Direction forward(2, 16, 1), backward(2, 16, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const Outputs x = {random_values(2 * 50, 3, 1e4f)};
  const Outputs y = run(ctx_, Utterances({50}, 0), x, lstm);
  EXPECT_THAT(y[0], testing::Each(testing::AllOf(testing::Ge(-1.0f), testing::Le(1.0f))));
}

// Rows that are columns of a wider tensor, for example beside a style.
TEST_P(LstmTest, RowsMayBeStrided) {
  Direction forward(6, 20, 1), backward(6, 20, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const Utterances utterances({25, 3}, 2);
  const Segments segments = utterances.segments();
  const Outputs x = random_rows(utterances.frames, 6), dense = run(ctx_, utterances, x, lstm);
  const Tensor in(DType::f32, {segments.total, 9}), out(DType::f32, {segments.total, 43});
  std::ranges::fill(in.span<float>(), kNan);
  std::ranges::fill(out.span<float>(), 7.0f);
  for (int64_t s = 0; s < segments.count(); ++s)
    for (int64_t row = 0; row < segments.rows(s); ++row)
      std::copy_n(x[static_cast<size_t>(s)].begin() + row * 6, 6,
                  in.view().row<float>(segments.begin(s) + row) + 2);
  bidirectional_lstm(ctx_, in.view().columns(2, 8), segments, lstm, out.view().columns(1, 41));
  const std::vector<float> wide(out.span<float>().begin(), out.span<float>().end());
  EXPECT_THAT(columns(wide, 43, 0, 1), testing::Each(7.0f));
  EXPECT_THAT(columns(wide, 43, 41, 43), testing::Each(7.0f));
  const Outputs y = taken_out(columns(wide, 43, 1, 41), segments, 40);
  for (size_t s = 0; s < x.size(); ++s) expect_same_bits(y[s], dense[s]);
}

TEST_P(LstmTest, AllocatesNothingInTheSteadyState) {
  Direction forward(6, 20, 1), backward(6, 20, 11);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), backward.view(), DType::f32);
  const Utterances utterances({25, 3}, 2);
  const Outputs x = random_rows(utterances.frames, 6);
  for (int i = 0; i < 2; ++i) run(ctx_, utterances, x, lstm);
  const int64_t growths = workspace_.growths();
  run(ctx_, utterances, x, lstm);
  EXPECT_EQ(workspace_.growths(), growths);
}

INSTANTIATE_TEST_SUITE_P(Cpu, LstmTest, every_isa(), name_of_isa);

class LstmShapes : public testing::Test, protected MatrixFixture {};

TEST_F(LstmShapes, WeightsWithoutMemoryTakeWhatTheyWouldTake) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Direction forward(6, 37, 1), backward(6, 37, 11);
    const PackedLstm real = pack_lstm(ctx_, forward.view(), backward.view(), dtype);
    const Tensor ih = Tensor::sized(DType::f32, {4 * 37, 6}), hh = Tensor::sized(DType::f32, {4 * 37, 37}),
                 bias = Tensor::sized(DType::f32, {4 * 37});
    const LstmDirection sized{ih, hh, bias, bias};
    EXPECT_EQ(pack_lstm(ctx_, sized, sized, dtype).bytes(), real.bytes());
  }
}

TEST_F(LstmShapes, MismatchedShapesAreNamed) {
  Direction forward(6, 4, 1), narrow(5, 4, 11);
  EXPECT_THROW(pack_lstm(ctx_, forward.view(), narrow.view(), DType::f32), Error);
  const PackedLstm lstm = pack_lstm(ctx_, forward.view(), forward.view(), DType::f32);
  EXPECT_EQ(lstm.inputs, 6);
  EXPECT_EQ(lstm.hidden, 4);
  std::vector<float> x(5 * 6), y(5 * 7);
  const Utterances utterances({5}, 0);
  EXPECT_THROW(bidirectional_lstm(ctx_, view_of(x, {5, 6}), utterances.segments(), lstm, view_of(y, {5, 7})),
               Error);
  bidirectional_lstm(ctx_, TensorView::of(x.data(), DType::f32, {0, 6}), Utterances({}, 0).segments(), lstm,
                     TensorView::of(y.data(), DType::f32, {0, 8}));
}

}  // namespace
}  // namespace shoal::ops
