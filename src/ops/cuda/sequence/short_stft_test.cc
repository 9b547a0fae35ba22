// The spectra and sounds of a GPU have the CPU's bits, whose own tests compare them with their definition.
#include "ops/short_stft.h"

#include "ops/cuda/device/cuda_testing.h"
#include "ops/ref/sequence.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::cuda {
namespace {

using Rows = std::vector<std::vector<float>>;

// Utterances at `rate` rows a frame and one more.
struct Batch {
  ShortStft stft;
  int64_t rate;
  Utterances utterances;

  Segments spectra() const { return utterances.segments(rate, 1); }
  Segments hops() const { return utterances.segments(rate); }
  int64_t width() const { return 2 * stft.bins(); }
};

std::vector<Batch> batches() {
  return {{{20, 5}, 120, Utterances({1, 3, 2}, 1)}, {{20, 5}, 3, Utterances({1, 17, 40, 5}, 1)},
          {{20, 10}, 2, Utterances({1, 33}, 2)},    {{8, 4}, 5, Utterances({1, 13, 14}, 1)},
          {{64, 8}, 7, Utterances({1, 9}, 2)},      {{64, 1}, 40, Utterances({1, 9, 5}, 1)},
          {{16, 1}, 9, Utterances({1, 20}, 3)},     {{2, 1}, 2, Utterances({1, 70}, 1)}};
}

Rows random_rows(const Segments& segments, int64_t width, float scale) {
  Rows rows;
  for (int64_t s = 0; s < segments.count(); ++s)
    rows.push_back(random_values(segments.rows(s) * width, static_cast<unsigned>(s + width), scale));
  return rows;
}

class CudaShortStft : public CudaTest {
 protected:
  Rows forward(const Batch& batch, const Rows& x) {
    const Segments segments = batch.spectra();
    const int64_t rows = segments.total_rows();
    const Tensor in = put(laid_out(x, batch.hops(), batch.stft.hop, kNan), {rows * batch.stft.hop});
    const Tensor out = garbage({rows, batch.width()});
    short_stft(ctx(), batch.stft, in, placed(segments), out);
    return taken_out(get(out), segments, batch.width());
  }
  Rows forward_on_the_host(const Batch& batch, const Rows& x) {
    const Segments segments = batch.spectra();
    const int64_t rows = segments.total_rows();
    std::vector<float> in = laid_out(x, batch.hops(), batch.stft.hop, kNan),
                       out(static_cast<size_t>(rows * batch.width()));
    short_stft(host_ctx(), batch.stft, view_of(in, {rows * batch.stft.hop}), segments,
               view_of(out, {rows, batch.width()}));
    return taken_out(out, segments, batch.width());
  }

  Rows inverse(const Batch& batch, const Rows& x) {
    const Segments segments = batch.spectra();
    const int64_t rows = segments.total_rows();
    const Tensor in = put(laid_out(x, segments, batch.width(), kNan), {rows, batch.width()});
    const Tensor out = garbage({rows * batch.stft.hop});
    inverse_short_stft(ctx(), batch.stft, in, placed(segments), out);
    return taken_out(get(out), batch.hops(), batch.stft.hop);
  }
  Rows inverse_on_the_host(const Batch& batch, const Rows& x) {
    const Segments segments = batch.spectra();
    const int64_t rows = segments.total_rows();
    std::vector<float> in = laid_out(x, segments, batch.width(), kNan),
                       out(static_cast<size_t>(rows * batch.stft.hop));
    inverse_short_stft(host_ctx(), batch.stft, view_of(in, {rows, batch.width()}), segments,
                       view_of(out, {rows * batch.stft.hop}));
    return taken_out(out, batch.hops(), batch.stft.hop);
  }
};

TEST_F(CudaShortStft, SpectraEqualTheCpu) {
  for (const Batch& batch : batches()) {
    SCOPED_TRACE(testing::Message() << batch.stft.points << ' ' << batch.stft.hop);
    const Rows x = random_rows(batch.hops(), batch.stft.hop, 1);
    const Rows want = forward_on_the_host(batch, x), got = forward(batch, x);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(got[s], want[s]);
  }
}

TEST_F(CudaShortStft, SoundsEqualTheCpu) {
  for (const Batch& batch : batches()) {
    SCOPED_TRACE(testing::Message() << batch.stft.points << ' ' << batch.stft.hop);
    const Rows x = random_rows(batch.spectra(), batch.width(), 3);
    const Rows want = inverse_on_the_host(batch, x), got = inverse(batch, x);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(got[s], want[s]);
  }
}

TEST_F(CudaShortStft, MatchesTheOracle) {
  const Batch batch{{20, 5}, 6, Utterances({30}, 1)};
  const Rows spectra = random_rows(batch.spectra(), batch.width(), 1);
  ref::Values complex;
  for (size_t at = 0; at < spectra[0].size(); at += 22)
    for (size_t k = at; k < at + 11; ++k) {
      const double magnitude = std::exp(static_cast<double>(spectra[0][k]));
      const double phase = std::sin(static_cast<double>(spectra[0][k + 11]));
      complex.push_back(magnitude * std::cos(phase));
      complex.push_back(magnitude * std::sin(phase));
    }
  const ref::Values want = ref::inverse_stft(complex, 20, 5);
  expect_close(inverse(batch, spectra)[0], want, ref::Values(want.size(), 2e-5));
}

TEST_F(CudaShortStft, ASegmentIsTheSameInAnyBatch) {
  const std::vector<int32_t> lengths = {1, 40, 3, 22};
  for (const int32_t gap : {1, 8}) {
    const Batch batch{{20, 5}, 6, Utterances(lengths, gap)};
    const Rows x = random_rows(batch.hops(), 5, 1), spectra = forward(batch, x),
               sound = inverse(batch, spectra);
    for (size_t s = 0; s < x.size(); ++s) {
      const Batch alone{{20, 5}, 6, Utterances({lengths[s]}, 1)};
      expect_same_bits(forward(alone, {x[s]})[0], spectra[s]);
      expect_same_bits(inverse(alone, {spectra[s]})[0], sound[s]);
    }
  }
}

TEST_F(CudaShortStft, SilenceAndConstantsHavePlainPhases) {
  const Batch batch{{20, 5}, 4, Utterances({3, 3, 3}, 1)};
  const Rows x = {std::vector<float>(60), std::vector<float>(60, 0.5f), std::vector<float>(60, -0.5f)};
  const Rows y = forward(batch, x), want = forward_on_the_host(batch, x);
  EXPECT_THAT(y[0], testing::Each(0.0f));
  for (size_t s = 0; s < y.size(); ++s) expect_same_bits(y[s], want[s]);
}

TEST_F(CudaShortStft, InverseTakesHugePhasesAndMagnitudes) {
  const Batch batch{{20, 5}, 4, Utterances({2}, 1)};
  std::vector<float> x(9 * 22, -200.0f);
  x[4 * 22 + 11] = 1e9f, x[4 * 22] = 0, x[4 * 22 + 12] = -70000.5f, x[4 * 22 + 1] = 0;
  const Rows want = inverse_on_the_host(batch, {x});
  expect_close(inverse(batch, {x})[0], wide(want[0]), ref::Values(40, 2e-7));
  x[4 * 22 + 2] = 100;
  EXPECT_FALSE(std::isfinite(inverse(batch, {x})[0][20]));
}

}  // namespace
}  // namespace shoal::ops::cuda
