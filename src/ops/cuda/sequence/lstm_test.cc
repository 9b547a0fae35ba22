#include "ops/cuda/rows/segment_testing.h"
#include "ops/lstm_testing.h"

namespace shoal::ops::cuda {
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

class CudaLstm : public SegmentTest {
 protected:
  // Rows of x and y may be part of wider rows with `gap` more columns.
  Outputs run(const Utterances& utterances, const Outputs& x, const PackedLstm& lstm, int64_t gap = 0) {
    poison(1 << 20);
    const Segments segments = utterances.segments();
    const int64_t rows = segments.total_rows(), inputs = lstm.inputs, width = 2 * lstm.hidden;
    Outputs wide;
    for (const std::vector<float>& own : x) {
      wide.emplace_back();
      for (auto row = own.begin(); row != own.end(); row += inputs) {
        wide.back().insert(wide.back().end(), row, row + inputs);
        wide.back().insert(wide.back().end(), static_cast<size_t>(gap), kNan);
      }
    }
    const Tensor in = put(laid_out(wide, segments, inputs + gap, kNan), {rows, inputs + gap});
    const Tensor out =
        put(std::vector<float>(static_cast<size_t>(rows * (width + gap)), 7.0f), {rows, width + gap});
    bidirectional_lstm(ctx(), in.view().columns(0, inputs), placed(segments), lstm,
                       out.view().columns(0, width));
    EXPECT_EQ(std::ranges::count(get(out), 7.0f), rows * gap);
    return taken_out(get(out.view().columns(0, width)), segments, width);
  }

  void expect_oracle(int64_t inputs, int64_t hidden, const std::vector<int32_t>& lengths, DType dtype) {
    SCOPED_TRACE(testing::Message() << inputs << " -> " << hidden << ' ' << name_of(dtype));
    Direction forward = fading(inputs, hidden, 1), backward = fading(inputs, hidden, 11);
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), dtype);
    const Utterances utterances(lengths, 3);
    const Outputs x = random_rows(lengths, inputs), y = run(utterances, x, lstm);
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

TEST_F(CudaLstm, MatchesTheOracleAtAwkwardSizes) {
  for (const auto& [inputs, hidden] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 16}, {40, 24}, {70, 33}, {9, 64}, {16, 300}})
    for (const DType dtype : {DType::f32, DType::bf16}) expect_oracle(inputs, hidden, {1, 2, 37}, dtype);
}

// Kokoro's: the kernel with its weights in registers, where the GPU has clusters.
TEST_F(CudaLstm, TwoHundredAndFiftySixUnitsMatchTheOracle) {
  expect_oracle(640, 256, {1, 2, 3, 90}, DType::f32);
  expect_oracle(24, 256, {200}, DType::f32);
  expect_oracle(24, 256, {5, 40}, DType::bf16);
}

// As many as share a cluster by four, in several waves.
TEST_F(CudaLstm, ASegmentIsTheSameInAnyBatch) {
  std::vector<int32_t> lengths = {9, 1, 30, 30, 2, 17, 5, 64};
  for (int32_t i = 0; i < 70; ++i) lengths.push_back(1 + i * 13 % 41);
  for (const int64_t hidden : {5, 72, 256}) {
    Direction forward(6, hidden, 1), backward(6, hidden, 11);
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), DType::f32);
    const Outputs x = random_rows(lengths, 6);
    Outputs alone;
    for (size_t s = 0; s < 12; ++s) alone.push_back(run(Utterances({lengths[s]}, 0), {x[s]}, lstm)[0]);
    for (const size_t size : {1, 2, 8, 12, 17, 40, 78})
      for (const int32_t gap : {0, 1, 12}) {
        const Outputs batch =
            run(Utterances({lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(size)}, gap),
                {x.begin(), x.begin() + static_cast<ptrdiff_t>(size)}, lstm);
        for (size_t s = 0; s < std::min<size_t>(size, 12); ++s) expect_same_bits(batch[s], alone[s]);
      }
  }
}

TEST_F(CudaLstm, DirectionsAreMirrorImages) {
  for (const int64_t hidden : {20, 256}) {
    Direction forward(8, hidden, 1), backward(8, hidden, 11);
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), DType::f32);
    const PackedLstm swapped = pack_lstm(ctx(), backward.view(), forward.view(), DType::f32);
    const Utterances utterances({31}, 1);
    const Outputs x = random_rows(utterances.frames, 8), y = run(utterances, x, lstm);
    const Outputs mirrored = run(utterances, {turned(x[0], 8)}, swapped);
    expect_same_bits(columns(y[0], 2 * hidden, 0, hidden),
                     turned(columns(mirrored[0], 2 * hidden, hidden, 2 * hidden), hidden));
    expect_same_bits(columns(y[0], 2 * hidden, hidden, 2 * hidden),
                     turned(columns(mirrored[0], 2 * hidden, 0, hidden), hidden));
  }
}

TEST_F(CudaLstm, SaturatedGatesStayFinite) {
  for (const int64_t hidden : {16, 256}) {
    Direction forward(2, hidden, 1), backward(2, hidden, 11);
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), DType::f32);
    const Outputs x = {random_values(2 * 50, 3, 1e4f)};
    EXPECT_THAT(run(Utterances({50}, 0), x, lstm)[0],
                testing::Each(testing::AllOf(testing::Ge(-1.0f), testing::Le(1.0f))));
  }
}

TEST_F(CudaLstm, RowsMayBeStrided) {
  for (const int64_t hidden : {20, 256}) {
    Direction forward(6, hidden, 1), backward(6, hidden, 11);
    const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), DType::f32);
    const Utterances utterances({25, 3}, 2);
    const Outputs x = random_rows(utterances.frames, 6), dense = run(utterances, x, lstm);
    for (const int64_t gap : {3, 4}) {
      const Outputs strided = run(utterances, x, lstm, gap);
      for (size_t s = 0; s < x.size(); ++s) expect_same_bits(strided[s], dense[s]);
    }
  }
}

TEST_F(CudaLstm, ManyRunsInARowAreTheSame) {
  Direction forward(6, 256, 1), backward(6, 256, 11);
  const PackedLstm lstm = pack_lstm(ctx(), forward.view(), backward.view(), DType::f32);
  const Utterances utterances({200, 7, 150, 33, 90, 12, 1, 60, 77, 140}, 2);
  const Outputs x = random_rows(utterances.frames, 6), first = run(utterances, x, lstm);
  for (int i = 0; i < 20; ++i) {
    const Outputs again = run(utterances, x, lstm);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(again[s], first[s]);
  }
}

}  // namespace
}  // namespace shoal::ops::cuda
