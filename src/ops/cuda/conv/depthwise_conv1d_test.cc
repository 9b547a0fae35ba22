#include "ops/conv1d.h"
#include "ops/cuda/conv/conv1d_testing.h"

namespace shoal::ops::cuda {
namespace {

class CudaDepthwiseConv1d : public ConvTest {
 protected:
  static constexpr int64_t kChannels = 37, kTaps = 7;

  Rows run(const Rows& xs, Rows& histories, int64_t history_offset = kAligned) {
    const Sequences s = place(xs, histories, kChannels, kTaps - 1, history_offset);
    const Tensor y = put(std::vector<float>(static_cast<size_t>(s.x.elements()), NAN), s.x.shape());
    depthwise_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, put(weight_, {kTaps, kChannels}),
                     put(bias_, {kChannels}), y);
    take(s, histories);
    return apart(s, get(y), kChannels);
  }

  std::vector<float> weight_ = random_values(kTaps * kChannels, 41), bias_ = random_values(kChannels, 42);
};

TEST_F(CudaDepthwiseConv1d, HasTheBitsOfTheCpu) {
  for (const int64_t rows : {1, 4, 300}) {
    std::vector<float> x = random_values(rows * kChannels, 43), y(x.size()), pool((kTaps - 1) * kChannels);
    Rows histories;
    const std::vector<float> got = run({x}, histories)[0];
    const std::vector<int32_t> offsets = {0, static_cast<int32_t>(rows)}, slots = {0};
    depthwise_conv1d(host_ctx(),
                     {view_of(x, {rows, kChannels}),
                      {.rows = {offsets}},
                      {view_of(pool, {1, (kTaps - 1) * kChannels}), 0, slots},
                      {}},
                     view_of(weight_, {kTaps, kChannels}), view_of(bias_, {kChannels}),
                     view_of(y, {rows, kChannels}));
    expect_same_bits(got, y);
    expect_same_bits(histories[0], pool);
  }
}

TEST_F(CudaDepthwiseConv1d, ChunksAndBatchesEqualOneShot) {
  const std::vector<float> a = random_values(20 * kChannels, 44), b = random_values(20 * kChannels, 45);
  Rows alone_a, alone_b, both;
  const std::vector<float> want_a = run({a}, alone_a)[0], want_b = run({b}, alone_b)[0];
  std::vector<float> got_a, got_b;
  for (const auto [a0, a1, b0, b1] :
       {std::array<int64_t, 4>{0, 4, 0, 1}, {4, 4, 1, 12}, {4, 19, 12, 12}, {19, 20, 12, 20}}) {
    const Rows y = run({rows_of(a, kChannels, a0, a1), {}, rows_of(b, kChannels, b0, b1)}, both, kUnaligned);
    append(got_a, y[0]);
    append(got_b, y[2]);
  }
  expect_same_bits(got_a, want_a);
  expect_same_bits(got_b, want_b);
  expect_same_bits(both[0], alone_a[0]);
  expect_same_bits(both[2], alone_b[0]);
}

}  // namespace
}  // namespace shoal::ops::cuda
