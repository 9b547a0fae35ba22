#include "ops/conv1d_testing.h"
#include "ops/op_testing.h"

namespace shoal::ops {
namespace {

class DepthwiseConv1d : public ConvTestOf<OpTest> {
 protected:
  static constexpr int64_t kChannels = 37, kTaps = 7;

  Rows run(const Rows& xs, Rows& histories, int64_t history_offset = kAligned) {
    const Sequences s = place(xs, histories, kChannels, kTaps - 1, history_offset);
    const Tensor y = garbage(s.x.shape());
    depthwise_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, put(weight_, {kTaps, kChannels}),
                     put(bias_, {kChannels}), y);
    take(s, histories);
    return apart(s, get(y), kChannels);
  }

  std::vector<float> weight_ = random_values(kTaps * kChannels, 41), bias_ = random_values(kChannels, 42);
};

TEST_P(DepthwiseConv1d, MatchesTheReference) {
  ref::Kernel kernel{{}, wide(bias_), kChannels, 1, kTaps};
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t k = 0; k < kTaps; ++k)
      kernel.weight.push_back(weight_[static_cast<size_t>(k * kChannels + c)]);
  const ref::Kernel magnitude{magnitudes(kernel.weight), magnitudes(kernel.bias), kChannels, 1, kTaps};
  for (const int64_t rows : {1, 4, 300}) {
    const std::vector<float> x = random_values(rows * kChannels, 43);
    Rows histories;
    expect_close(run({x}, histories)[0], ref::depthwise_conv1d(wide(x), kernel),
                 sum_bound(ref::depthwise_conv1d(magnitudes(wide(x)), magnitude), kTaps + 1));
  }
}

TEST_P(DepthwiseConv1d, HasTheBitsOfThePortableKernels) {
  for (const int64_t rows : {1, 4, 300}) {
    const std::vector<float> x = random_values(rows * kChannels, 43);
    Rows histories, want_histories;
    const Rows want = on_portable_cpu([&] { return run({x}, want_histories); });
    expect_same_bits(run({x}, histories)[0], want[0]);
    expect_same_bits(histories[0], want_histories[0]);
  }
}

TEST_P(DepthwiseConv1d, ChunksAndRaggedBatchesEqualOneShot) {
  const std::vector<float> a = random_values(20 * kChannels, 44), b = random_values(20 * kChannels, 45);
  Rows alone_a, alone_b;
  const std::vector<float> want_a = run({a}, alone_a)[0], want_b = run({b}, alone_b)[0];
  struct Chunk {
    int64_t a_begin, a_end, b_begin, b_end;
  };
  for (const std::vector<Chunk>& chunks :
       {std::vector<Chunk>{{0, 4, 0, 1}, {4, 4, 1, 12}, {4, 19, 12, 12}, {19, 20, 12, 20}},
        {{0, 4, 0, 1}, {4, 8, 1, 8}, {8, 12, 8, 9}, {12, 16, 9, 16}, {16, 20, 16, 20}}}) {
    std::vector<float> got_a, got_b;
    Rows both;
    for (const Chunk& chunk : chunks) {
      const Rows y = run({rows_of(a, kChannels, chunk.a_begin, chunk.a_end),
                          {},
                          rows_of(b, kChannels, chunk.b_begin, chunk.b_end)},
                         both, kUnaligned);
      append(got_a, y[0]);
      append(got_b, y[2]);
    }
    expect_same_bits(got_a, want_a);
    expect_same_bits(got_b, want_b);
    expect_same_bits(both[0], alone_a[0]);
    expect_same_bits(both[2], alone_b[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Machine, DepthwiseConv1d, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
