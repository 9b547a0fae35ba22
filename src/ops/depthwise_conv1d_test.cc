#include "ops/conv1d_testing.h"

namespace shoal::ops {
namespace {

class DepthwiseConv1d : public testing::Test, protected MatrixFixture {
 protected:
  static constexpr int64_t kChannels = 37, kTaps = 7;

  std::vector<float> run(std::vector<float> x, std::vector<int32_t> offsets,
                         std::vector<std::vector<float>>& histories) {
    histories.resize(offsets.size() - 1, std::vector<float>((kTaps - 1) * kChannels));
    HistoryPool pool(histories, (kTaps - 1) * kChannels);
    std::vector<float> y(x.size());
    const int64_t rows = offsets.back();
    depthwise_conv1d(ctx_, {view_of(x, {rows, kChannels}), {.rows = {offsets}}, pool.view(), {}},
                     view_of(weight_, {kTaps, kChannels}), view_of(bias_, {kChannels}),
                     view_of(y, {rows, kChannels}));
    pool.take(histories);
    return y;
  }

  std::vector<float> weight_ = random_values(kTaps * kChannels, 41), bias_ = random_values(kChannels, 42);
};

TEST_F(DepthwiseConv1d, MatchesTheReference) {
  ref::Kernel kernel{{}, wide(bias_), kChannels, 1, kTaps};
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t k = 0; k < kTaps; ++k)
      kernel.weight.push_back(weight_[static_cast<size_t>(k * kChannels + c)]);
  const ref::Kernel magnitude{magnitudes(kernel.weight), magnitudes(kernel.bias), kChannels, 1, kTaps};
  for (const int32_t rows : {1, 4, 300}) {
    const std::vector<float> x = random_values(rows * kChannels, 43);
    std::vector<std::vector<float>> histories;
    expect_close(run(x, {0, rows}, histories), ref::depthwise_conv1d(wide(x), kernel),
                 sum_bound(ref::depthwise_conv1d(magnitudes(wide(x)), magnitude), kTaps + 1));
  }
}

TEST_F(DepthwiseConv1d, ChunksAndBatchesEqualOneShot) {
  const std::vector<float> a = random_values(20 * kChannels, 44), b = random_values(20 * kChannels, 45);
  std::vector<std::vector<float>> alone_a, alone_b, both;
  std::vector<float> whole = run(a, {0, 20}, alone_a), got_a, got_b;
  append(whole, run(b, {0, 20}, alone_b));
  for (int32_t t = 0; t < 20; t += 4) {  // a in pieces of 4; b in pieces of 1 and 7
    const int32_t b0 = t / 8 * 8 + (t % 8 ? 1 : 0), b1 = t % 8 ? t / 8 * 8 + 8 : std::min(t + 1, 20);
    std::vector<float> x = rows_of(a, kChannels, t, t + 4);
    const int32_t b_end = t == 16 ? 20 : b1;
    append(x, rows_of(b, kChannels, b0, b_end));
    const std::vector<float> y = run(x, {0, 4, 4 + b_end - b0}, both);
    append(got_a, rows_of(y, kChannels, 0, 4));
    append(got_b, rows_of(y, kChannels, 4, 4 + b_end - b0));
  }
  append(got_a, got_b);
  expect_same_bits(got_a, whole);
  expect_same_bits(both[0], alone_a[0]);
  expect_same_bits(both[1], alone_b[0]);
}

}  // namespace
}  // namespace shoal::ops
