#include "ops/lstm.h"

#include "ops/lstm_testing.h"
#include "ops/op_testing.h"

namespace shoal::ops {
namespace {

using lstm_testing::columns;
using lstm_testing::Direction;
using lstm_testing::random_rows;
using lstm_testing::turned;
using Outputs = std::vector<std::vector<float>>;

// A recurrence whose errors fade, so that long ones can be compared.
Direction fading(int64_t inputs, int64_t hidden, unsigned seed) {
  Direction direction(inputs, hidden, seed);
  for (float& weight : direction.weight_hh) weight *= 0.3f;
  return direction;
}

// Rows of `width` with `gap` NaNs behind each.
Outputs widened(const Outputs& x, int64_t width, int64_t gap) {
  Outputs wide;
  for (const std::vector<float>& own : x) {
    wide.emplace_back();
    for (auto row = own.begin(); row != own.end(); row += width) {
      wide.back().insert(wide.back().end(), row, row + width);
      wide.back().insert(wide.back().end(), static_cast<size_t>(gap), kNan);
    }
  }
  return wide;
}

// Two directions of the same size.
struct Both {
  Direction forward, backward;
  Both(int64_t inputs, int64_t hidden) : forward(inputs, hidden, 1), backward(inputs, hidden, 11) {}
};

class LstmTest : public OpTest {
 protected:
  PackedLstm pack(Both both) {
    return pack_lstm(ctx(), both.forward.view(), both.backward.view(), DType::f32);
  }

  // Rows of x and y may be part of wider rows with `gap` more columns, `skip` of y's before them.
  Outputs run(const Utterances& utterances, const Outputs& x, const PackedLstm& lstm, int64_t gap = 0,
              int64_t skip = 0) {
    poison(1 << 20);
    const Segments segments = utterances.segments();
    const int64_t rows = segments.total_rows(), inputs = lstm.inputs, width = 2 * lstm.hidden;
    const Tensor in =
        put(laid_out(widened(x, inputs, gap), segments, inputs + gap, kNan), {rows, inputs + gap});
    const Tensor out =
        put(std::vector<float>(static_cast<size_t>(rows * (width + gap)), 7.0f), {rows, width + gap});
    const TensorView y = out.view().columns(skip, skip + width);
    bidirectional_lstm(ctx(), in.view().columns(0, inputs), placed(segments), lstm, y);
    EXPECT_EQ(std::ranges::count(get(out), 7.0f), rows * gap);
    return taken_out(get(y), segments, width);
  }

  void expect_oracle(Direction forward, Direction backward, const std::vector<int32_t>& lengths,
                     DType dtype) {
    const int64_t inputs = forward.inputs, hidden = forward.hidden;
    SCOPED_TRACE(testing::Message() << inputs << " -> " << hidden << ' ' << name_of(dtype));
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), dtype);
    const Outputs x = random_rows(lengths, inputs), y = run(Utterances(lengths, 3), x, lstm);
    for (size_t s = 0; s < x.size(); ++s) {
      const ref::Values rows = rounded(x[s], dtype);
      const ref::Bounded first = ref::lstm(rows, forward.oracle(dtype));
      const ref::Bounded second = ref::lstm(turned(rows, inputs), backward.oracle(dtype));
      expect_close(columns(y[s], 2 * hidden, 0, hidden), first.values, first.bounds);
      expect_close(columns(y[s], 2 * hidden, hidden, 2 * hidden), turned(second.values, hidden),
                   turned(second.bounds, hidden));
    }
  }
};

TEST_P(LstmTest, MatchesTheOracleAtAwkwardSizes) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [inputs, hidden] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 16}, {40, 24}, {70, 33}})
      expect_oracle(Direction(inputs, hidden, 1), Direction(inputs, hidden, 11), {1, 2, 37}, dtype);
    for (const auto& [inputs, hidden] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 16}, {40, 24}, {70, 33}, {9, 64}, {16, 300}})
      expect_oracle(fading(inputs, hidden, 1), fading(inputs, hidden, 11), {1, 2, 37}, dtype);
  }
}

// Kokoro's: a GPU that has clusters keeps these weights in registers.
TEST_P(LstmTest, TwoHundredAndFiftySixUnitsMatchTheOracle) {
  const auto rows = [&](int32_t count) { return on_gpu() ? count : count / 10; };
  expect_oracle(fading(640, 256, 1), fading(640, 256, 11), {1, 2, 3, rows(90)}, DType::f32);
  expect_oracle(fading(24, 256, 1), fading(24, 256, 11), {rows(200)}, DType::f32);
  expect_oracle(fading(24, 256, 1), fading(24, 256, 11), {5, rows(40)}, DType::bf16);
}

// As many as share a GPU's cluster by four, in several waves.
TEST_P(LstmTest, ASegmentIsTheSameInAnyBatch) {
  std::vector<int32_t> lengths = {9, 1, 30, 30, 2, 17, 5, 64};
  for (int32_t i = 0; i < 70; ++i) lengths.push_back(1 + i * 13 % 41);
  for (const int64_t hidden : {5, 72, 256}) {
    if (hidden == 256 && !on_gpu()) continue;  // CPUs have no kernel for it
    const PackedLstm lstm = pack(Both(6, hidden));
    const Outputs x = random_rows(lengths, 6);
    Outputs alone;
    for (size_t s = 0; s < 12; ++s) alone.push_back(run(Utterances({lengths[s]}, 0), {x[s]}, lstm)[0]);
    for (const size_t size : {1, 2, 8, 12, 17, 40, 78})
      for (const int32_t gap : {0, 1, 12}) {
        if (!on_gpu() && hidden > 5 && size > 12) continue;
        const Outputs batch =
            run(Utterances({lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(size)}, gap),
                {x.begin(), x.begin() + static_cast<ptrdiff_t>(size)}, lstm);
        for (size_t s = 0; s < std::min<size_t>(size, 12); ++s) expect_same_bits(batch[s], alone[s]);
      }
  }
}

TEST_P(LstmTest, DirectionsAreMirrorImages) {
  for (const int64_t hidden : {20, 256}) {
    Both both(8, hidden);
    const PackedLstm lstm = pack(both);
    std::swap(both.forward, both.backward);
    const PackedLstm swapped = pack(both);
    const Utterances utterances({31}, 1);
    const Outputs x = random_rows(utterances.frames, 8), y = run(utterances, x, lstm);
    const Outputs mirrored = run(utterances, {turned(x[0], 8)}, swapped);
    expect_same_bits(columns(y[0], 2 * hidden, 0, hidden),
                     turned(columns(mirrored[0], 2 * hidden, hidden, 2 * hidden), hidden));
    expect_same_bits(columns(y[0], 2 * hidden, hidden, 2 * hidden),
                     turned(columns(mirrored[0], 2 * hidden, 0, hidden), hidden));
  }
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
    const PackedLstm lstm = pack_lstm(ctx(), direction.view(), direction.view(), DType::f32);
    return run(Utterances(std::vector<int32_t>(x.size(), 1), 0), x, lstm);
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
  for (const int64_t hidden : {16, 256}) {
    const PackedLstm lstm = pack(Both(2, hidden));
    const Outputs x = {random_values(2 * 50, 3, 1e4f)};
    EXPECT_THAT(run(Utterances({50}, 0), x, lstm)[0],
                testing::Each(testing::AllOf(testing::Ge(-1.0f), testing::Le(1.0f))));
  }
}

// Rows that are columns of a wider tensor, for example beside a style.
TEST_P(LstmTest, RowsMayBeStrided) {
  for (const int64_t hidden : {20, 256}) {
    const PackedLstm lstm = pack(Both(6, hidden));
    const Utterances utterances({25, 3}, 2);
    const Outputs x = random_rows(utterances.frames, 6), dense = run(utterances, x, lstm);
    for (const auto& [gap, skip] : {std::pair<int64_t, int64_t>{3, 0}, {3, 1}, {4, 0}}) {
      const Outputs strided = run(utterances, x, lstm, gap, skip);
      for (size_t s = 0; s < x.size(); ++s) expect_same_bits(strided[s], dense[s]);
    }
  }
}

TEST_P(LstmTest, ManyRunsInARowAreTheSame) {
  const PackedLstm lstm = pack(Both(6, on_gpu() ? 256 : 24));
  const Utterances utterances({200, 7, 150, 33, 90, 12, 1, 60, 77, 140}, 2);
  const Outputs x = random_rows(utterances.frames, 6), first = run(utterances, x, lstm);
  for (int i = 0; i < (on_gpu() ? 20 : 3); ++i) {
    const Outputs again = run(utterances, x, lstm);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(again[s], first[s]);
  }
}

TEST_P(LstmTest, AllocatesNothingInTheSteadyState) {
  const PackedLstm lstm = pack(Both(6, 20));
  const Utterances utterances({25, 3}, 2);
  const Outputs x = random_rows(utterances.frames, 6);
  for (int i = 0; i < 2; ++i) run(utterances, x, lstm);
  const int64_t growths = ctx().workspace->growths();
  run(utterances, x, lstm);
  EXPECT_EQ(ctx().workspace->growths(), growths);
}

TEST_P(LstmTest, MismatchedShapesAreNamed) {
  Direction forward(6, 4, 1), narrow(5, 4, 11);
  EXPECT_THROW(pack_lstm(ctx(), forward.view(), narrow.view(), DType::f32), Error);
  const PackedLstm lstm = pack_lstm(ctx(), forward.view(), forward.view(), DType::f32);
  EXPECT_EQ(lstm.inputs, 6);
  EXPECT_EQ(lstm.hidden, 4);
  const Utterances utterances({5}, 0);
  const Tensor x = garbage({5, 6}), y = garbage({5, 7});
  EXPECT_THROW(bidirectional_lstm(ctx(), x, placed(utterances.segments()), lstm, y), Error);
  const Utterances none({}, 0);
  bidirectional_lstm(ctx(), garbage({0, 6}), none.segments(), lstm, garbage({0, 8}));
}

INSTANTIATE_TEST_SUITE_P(Machine, LstmTest, testing::ValuesIn(every_machine()), name_of_machine);

class LstmOnCpus : public LstmTest {};

TEST_P(LstmOnCpus, ASegmentIsTheSameInAnyTeam) {
  const PackedLstm lstm = pack(Both(6, 72));
  const std::vector<int32_t> lengths = {9, 1, 30, 30, 2, 17, 5, 64};
  const Outputs x = random_rows(lengths, 6), two = run(Utterances(lengths, 0), x, lstm);
  for (const int threads : {1, 2, 5, 16})
    for (const int32_t gap : {0, 1, 12}) {
      ThreadTeam team(threads);
      ctx().team = &team;
      const Outputs batch = run(Utterances(lengths, gap), x, lstm);
      for (size_t s = 0; s < x.size(); ++s) expect_same_bits(batch[s], two[s]);
    }
}

TEST_P(LstmOnCpus, HasTheSameBitsOnEveryInstructionSet) {
  const PackedLstm lstm = pack(Both(20, 40));
  const Utterances utterances({25, 3, 40}, 2);
  const Outputs x = random_rows(utterances.frames, 20), own = run(utterances, x, lstm);
  set_cpu_isa(CpuIsa::portable);
  const Outputs plain = run(utterances, x, lstm);
  for (size_t s = 0; s < x.size(); ++s) expect_same_bits(own[s], plain[s]);
}

TEST_P(LstmOnCpus, WeightsWithoutMemoryTakeWhatTheyWouldTake) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Direction forward(6, 37, 1), backward(6, 37, 11);
    const PackedLstm real = pack_lstm(ctx(), forward.view(), backward.view(), dtype);
    const Tensor ih = Tensor::sized(DType::f32, {4 * 37, 6}), hh = Tensor::sized(DType::f32, {4 * 37, 37}),
                 bias = Tensor::sized(DType::f32, {4 * 37});
    const LstmDirection sized{ih, hh, bias, bias};
    EXPECT_EQ(pack_lstm(ctx(), sized, sized, dtype).bytes(), real.bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LstmOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
