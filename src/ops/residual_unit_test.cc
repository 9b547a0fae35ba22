// A residual unit is its two convolutions.
#include "ops/conv1d_testing.h"
#include "ops/transfer.h"

namespace shoal::ops {
namespace {

class ResidualUnit : public Conv1d {
 protected:
  // One call, or the two convolutions that it replaces.
  Rows run_unit(const Layer& wide, const Layer& narrow, const Rows& xs, Rows& histories, bool as_one) {
    const int64_t channels = wide.geometry.inputs, dilation = wide.geometry.dilation;
    const Sequences s = place(xs, histories, channels, wide.look_back());
    if (as_one) {
      residual_unit(ctx(), s.x, s.rows(), s.history(),
                    {.wide = &wide.weight,
                     .dilation = dilation,
                     .narrow = &narrow.weight,
                     .wide_alpha = wide.snake(),
                     .narrow_alpha = narrow.snake()},
                    s.x);
    } else {
      const Tensor between = garbage(s.x.shape());
      causal_conv1d(ctx(), {s.x, s.rows(), s.history(), wide.snake()}, wide.weight, dilation, between);
      causal_conv1d(ctx(), {between, s.rows(), {}, narrow.snake()}, narrow.weight, 1, s.x,
                    {.accumulate = true});
      synchronize(ctx());
    }
    take(s, histories);
    return apart(s, get(s.x), channels);
  }
};

TEST_P(ResidualUnit, EqualsItsTwoConvolutions) {
  for (const int64_t channels : {12, 24, 40, 96, 192}) {
    if (channels > 40 && !on_gpu()) continue;  // CPUs have no kernels for ranges of channels
    for (const int64_t dilation : {1, 3, 9}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, dilation " << dilation);
      const Layer wide = random_layer({channels, channels, 7, dilation}, /*snakes=*/true),
                  narrow = random_layer({channels, channels, 1, 1}, /*snakes=*/true);
      Rows histories, want_histories;
      for (const std::vector<int64_t>& counts :
           {std::vector<int64_t>{30, 0, 7, 0}, {1, 1, 1, 0}, {0, 0, 9, 0}, {0, 0, 0, 0}, {3, 0, 50, 130}}) {
        Rows xs;
        for (const int64_t count : counts)
          xs.push_back(random_values(count * channels, static_cast<unsigned>(count + counts[0] + 5)));
        const Rows got = run_unit(wide, narrow, xs, histories, true),
                   want = run_unit(wide, narrow, xs, want_histories, false);
        for (size_t s = 0; s < xs.size(); ++s) {
          expect_same_bits(got[s], want[s]);
          expect_same_bits(histories[s], want_histories[s]);
        }
      }
    }
  }
}

TEST_P(ResidualUnit, MismatchedConvolutionsAreOurFault) {
  constexpr int64_t kChannels = 24, kDilation = 3;
  const Layer wide = random_layer({kChannels, kChannels, 7, kDilation}),
              narrow = random_layer({kChannels, kChannels, 1, 1}),
              other = random_layer({kChannels, 16, 1, 1}),
              two_taps = random_layer({kChannels, kChannels, 2, 1});
  Rows histories;
  const Sequences s = place({std::vector<float>(kChannels)}, histories, kChannels, wide.look_back());
  const auto run = [&](const PackedMatrix& first, const PackedMatrix& second) {
    residual_unit(ctx(), s.x, s.rows(), s.history(), {&first, kDilation, &second, {}, {}}, s.x);
  };
  EXPECT_NO_THROW(run(wide.weight, narrow.weight));
  EXPECT_THROW(run(wide.weight, other.weight), Error);
  EXPECT_THROW(run(wide.weight, two_taps.weight), Error);
  EXPECT_THROW(run(other.weight, narrow.weight), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, ResidualUnit, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

}  // namespace
}  // namespace shoal::ops
