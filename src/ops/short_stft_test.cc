#include "ops/short_stft.h"

#include <complex>
#include <numbers>

#include "ops/op_testing.h"
#include "ops/ref/sequence.h"
#include "ops/sequence_testing.h"

namespace shoal::ops {
namespace {

using Rows = std::vector<std::vector<float>>;

constexpr float kPi = std::numbers::pi_v<float>;

// Utterances at `rate` rows a frame and one more, as the spectra of a generator have them.
struct StftBatch {
  ShortStft stft;
  int64_t rate;
  Utterances utterances;

  Segments segments() const { return utterances.segments(rate, 1); }
  Segments hops() const { return utterances.segments(rate); }
  int64_t width() const { return 2 * stft.bins(); }

  Rows samples() const {
    Rows x;
    for (const int32_t frames : utterances.frames)
      x.push_back(random_values(frames * rate * stft.hop, static_cast<unsigned>(frames)));
    return x;
  }
  // As a network writes them: logarithms of magnitudes, and what the sine makes phases of.
  Rows written_spectra() const {
    Rows x;
    for (int64_t s = 0; s < segments().count(); ++s)
      x.push_back(random_values(segments().rows(s) * width(), static_cast<unsigned>(s), 3));
    return x;
  }
};

const StftBatch kKokoro{{20, 5}, 120, Utterances({1, 3, 2}, 1)};

std::vector<StftBatch> batches() {
  return {kKokoro,
          {{20, 5}, 3, Utterances({1, 17, 40, 5}, 1)},
          {{20, 10}, 2, Utterances({1, 33}, 2)},
          {{8, 4}, 5, Utterances({1, 13, 14}, 1)},
          {{64, 8}, 7, Utterances({1, 9}, 2)},
          {{64, 1}, 40, Utterances({1, 9, 5}, 1)},
          {{16, 1}, 9, Utterances({1, 20}, 3)},
          {{2, 1}, 2, Utterances({1, 70}, 1)}};
}

class ShortStftTest : public OpTest {
 protected:
  Rows forward(const StftBatch& batch, const Rows& x) {
    const Segments segments = batch.segments();
    const int64_t rows = segments.total_rows();
    const Tensor in = put(laid_out(x, batch.hops(), batch.stft.hop, kNan), {rows * batch.stft.hop});
    const Tensor out = garbage({rows, batch.width()});
    short_stft(ctx(), batch.stft, in, placed(segments), out);
    return taken_out(get(out), segments, batch.width());
  }
  Rows inverse(const StftBatch& batch, const Rows& spectra) {
    const Segments segments = batch.segments();
    const int64_t rows = segments.total_rows();
    const Tensor in = put(laid_out(spectra, segments, batch.width(), kNan), {rows, batch.width()});
    const Tensor out = garbage({rows * batch.stft.hop});
    inverse_short_stft(ctx(), batch.stft, in, placed(segments), out);
    return taken_out(get(out), batch.hops(), batch.stft.hop);
  }
};

// As complex numbers: a bin errs by (points / 2 + 4) roundings of the samples it sums (a pair of them
// first), then by the 2e-6 of a turn's worth that magnitude and angle are rounded to.
TEST_P(ShortStftTest, MatchesTheOracle) {
  for (const StftBatch& batch : batches()) {
    const Rows x = batch.samples(), y = forward(batch, x);
    const auto bins = static_cast<size_t>(batch.stft.bins());
    for (size_t s = 0; s < x.size(); ++s) {
      const ref::Values want = ref::stft(wide(x[s]), batch.stft.points, batch.stft.hop);
      ASSERT_EQ(want.size(), y[s].size());
      double largest = 0;
      for (const float value : x[s]) largest = std::max(largest, std::abs(static_cast<double>(value)));
      const double points = static_cast<double>(batch.stft.points);
      const double sum = (points / 2 + 4) * kUnit * largest * points / 2;
      std::vector<float> got;
      ref::Values bound;
      for (size_t at = 0; at < y[s].size(); at += 2 * bins)
        for (size_t k = 0; k < bins; ++k) {
          const auto z = std::polar<double>(y[s][at + k], y[s][at + bins + k]);
          got.push_back(static_cast<float>(z.real()));
          got.push_back(static_cast<float>(z.imag()));
          bound.insert(bound.end(), 2, sum + 4e-7 * y[s][at + k]);
        }
      expect_close(got, want, bound);
    }
  }
}

// The network reads phases as numbers.
TEST_P(ShortStftTest, PhasesAreThoseOfTheOracle) {
  for (const StftBatch& batch : batches()) {
    const Rows x = batch.samples(), y = forward(batch, x);
    const auto bins = static_cast<size_t>(batch.stft.bins());
    size_t compared = 0;
    for (size_t s = 0; s < x.size(); ++s) {
      const ref::Values want = ref::stft(wide(x[s]), batch.stft.points, batch.stft.hop);
      for (size_t at = 0; at < y[s].size(); at += 2 * bins)
        for (size_t k = 0; k < bins; ++k) {
          const double re = want[at + 2 * k], im = want[at + 2 * k + 1], phase = y[s][at + bins + k];
          ASSERT_TRUE(phase > -std::numbers::pi && phase <= static_cast<double>(kPi)) << phase;
          if (k == 0 || k + 1 == bins) {
            ASSERT_TRUE(phase == 0.0 || phase == static_cast<double>(kPi)) << phase;
            ASSERT_TRUE(std::abs(re) < 1e-4 || (phase > 0) == (re < 0)) << re;
          } else if (std::abs(im) > 1e-3 || re > 1e-3) {  // away from the cut and from 0
            ASSERT_NEAR(phase, std::atan2(im, re), 5e-7 + 3e-5 / std::hypot(re, im)) << re << ' ' << im;
            ++compared;
          }
        }
    }
    EXPECT_TRUE(bins == 2 || compared > 4);
  }
}

// atan2 in every octant, to 3e-7, by a spectrum that is known: frames of one tone.
TEST_P(ShortStftTest, AnglesAreExactToAFewUlps) {
  const StftBatch batch{{20, 5}, 4, Utterances({20}, 1)};
  for (int i = 0; i < 200; ++i) {
    const double turn = 2 * std::numbers::pi * (i + 0.3) / 200;
    Rows x(1);
    for (int t = 0; t < 400; ++t)
      x[0].push_back(static_cast<float>(std::cos(2 * std::numbers::pi * 3 * t / 20 + turn)));
    const std::vector<float> y = forward(batch, x)[0];
    const ref::Values want = ref::stft(wide(x[0]), 20, 5);
    const size_t at = 40 * 22;         // a frame in the middle
    for (size_t k = 2; k <= 4; ++k) {  // the tone and its neighbours within the window's width
      const double re = want[at + 2 * k], im = want[at + 2 * k + 1];
      EXPECT_NEAR(y[at + k], std::hypot(re, im), 2e-6);
      EXPECT_NEAR(std::remainder(y[at + 11 + k] - std::atan2(im, re), 2 * std::numbers::pi), 0, 7e-7);
    }
  }
}

TEST_P(ShortStftTest, SilenceAndConstantsHavePlainPhases) {
  const StftBatch batch{{20, 5}, 4, Utterances({3, 3, 3}, 1)};
  const std::vector<float> y = forward(
      batch, {std::vector<float>(60), std::vector<float>(60, 0.5f), std::vector<float>(60, -0.5f)})[0];
  EXPECT_THAT(y, testing::Each(0.0f));
  for (const float constant : {0.5f, -0.5f}) {
    const StftBatch one{{20, 5}, 4, Utterances({3}, 1)};
    const std::vector<float> spectra = forward(one, {std::vector<float>(60, constant)})[0];
    for (size_t at = 0; at < spectra.size(); at += 22) {
      EXPECT_NEAR(spectra[at], 5, 1e-6);
      EXPECT_EQ(spectra[at + 11], constant > 0 ? 0 : kPi);
    }
  }
}

TEST_P(ShortStftTest, InverseMatchesTheOracle) {
  for (const StftBatch& batch : batches()) {
    const int64_t bins = batch.stft.bins();
    const Rows x = batch.written_spectra(), y = inverse(batch, x);
    for (size_t s = 0; s < x.size(); ++s) {
      ref::Values spectra;
      double largest = 0;  // sum of the magnitudes of a frame
      for (size_t at = 0; at < x[s].size(); at += static_cast<size_t>(batch.width())) {
        double sum = 0;
        for (size_t k = 0; k < static_cast<size_t>(bins); ++k) {
          const double magnitude = std::exp(static_cast<double>(x[s][at + k]));
          const double phase = std::sin(static_cast<double>(x[s][at + static_cast<size_t>(bins) + k]));
          spectra.push_back(magnitude * std::cos(phase));
          spectra.push_back(magnitude * std::sin(phase));
          sum += 2 * magnitude / static_cast<double>(batch.stft.points);
        }
        largest = std::max(largest, sum);
      }
      const ref::Values want = ref::inverse_stft(spectra, batch.stft.points, batch.stft.hop);
      // The exponential errs by 3 units, sines by 1.3e-7 twice, sums by their length; a window that overlaps
      // little divides by as little as a quarter of what it multiplied with.
      const double relative = 3e-7 + static_cast<double>(bins + 8) * kUnit;
      const double frames = static_cast<double>(batch.stft.points / batch.stft.hop);
      expect_close(y[s], want, ref::Values(want.size(), 4 * frames * relative * largest));
    }
  }
}

// The inverse's phases end at 1 rad, so a spectrum z is given to it in four parts: z = (a - a') e^(0.9 i) +
// (b - b') e^(-0.9 i), none below 0. Their sounds add up to the one that was transformed.
TEST_P(ShortStftTest, TheInverseUndoesTheTransform) {
  for (const StftBatch& batch : {kKokoro, StftBatch{{20, 5}, 3, Utterances({1, 17, 40}, 1)}}) {
    const Rows x = batch.samples(), spectra = forward(batch, x);
    std::vector<ref::Values> sums;
    for (const std::vector<float>& sound : x) sums.emplace_back(sound.size());
    for (const double side : {1.0, -1.0})
      for (const double sign : {1.0, -1.0}) {
        Rows parts = spectra;
        for (std::vector<float>& part : parts)
          for (size_t at = 0; at < part.size(); at += 22)
            for (size_t k = at; k < at + 11; ++k) {
              const auto z = std::polar<double>(part[k], part[k + 11]);
              const double share = 0.5 * (z.real() / std::cos(0.9) + side * z.imag() / std::sin(0.9));
              part[k] = static_cast<float>(std::log(std::max(1e-30, sign * share)));
              part[k + 11] = static_cast<float>(std::asin(side * 0.9));
            }
        const Rows sounds = inverse(batch, parts);
        for (size_t s = 0; s < x.size(); ++s)
          for (size_t t = 0; t < x[s].size(); ++t) sums[s][t] += sign * sounds[s][t];
      }
    // Magnitudes up to 15 err by 6e-7 of themselves through log and exp, 11 of them by their mean.
    for (size_t s = 0; s < x.size(); ++s) expect_close(x[s], sums[s], ref::Values(x[s].size(), 1e-5));
  }
}

TEST_P(ShortStftTest, ASegmentIsTheSameInAnyBatch) {
  const std::vector<int32_t> lengths = {1, 40, 3, 22};
  const auto batch_of = [](std::vector<int32_t> frames, int32_t gap) {
    return StftBatch{{20, 5}, 6, Utterances(std::move(frames), gap)};
  };
  const Rows x = batch_of(lengths, 1).samples();
  Rows alone, sound;
  for (size_t s = 0; s < x.size(); ++s) {
    const StftBatch one = batch_of({lengths[s]}, 1);
    alone.push_back(forward(one, {x[s]})[0]);
    sound.push_back(inverse(one, {alone[s]})[0]);
  }
  for (const int32_t gap : {1, 8}) {
    const StftBatch batch = batch_of(lengths, gap);
    const Rows y = forward(batch, x), back = inverse(batch, alone);
    for (size_t s = 0; s < x.size(); ++s) {
      expect_same_bits(y[s], alone[s]);
      expect_same_bits(back[s], sound[s]);
    }
  }
}

TEST_P(ShortStftTest, SpectraHaveTheBitsOfThePortableKernels) {
  std::vector<std::pair<StftBatch, Rows>> cases;
  for (const StftBatch& batch : batches()) cases.emplace_back(batch, batch.samples());
  cases.emplace_back(
      StftBatch{{20, 5}, 4, Utterances({3, 3, 3}, 1)},
      Rows{std::vector<float>(60), std::vector<float>(60, 0.5f), std::vector<float>(60, -0.5f)});
  for (const auto& [batch, x] : cases) {
    SCOPED_TRACE(testing::Message() << batch.stft.points << ' ' << batch.stft.hop);
    const Rows want = on_portable_cpu([&] { return forward(batch, x); }), got = forward(batch, x);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(got[s], want[s]);
  }
}

TEST_P(ShortStftTest, SoundsHaveTheBitsOfThePortableKernels) {
  for (const StftBatch& batch : batches()) {
    SCOPED_TRACE(testing::Message() << batch.stft.points << ' ' << batch.stft.hop);
    const Rows x = batch.written_spectra();
    const Rows want = on_portable_cpu([&] { return inverse(batch, x); }), got = inverse(batch, x);
    for (size_t s = 0; s < x.size(); ++s) expect_same_bits(got[s], want[s]);
  }
}

// Phases of any size, where the sine's own reduction ends; magnitudes from 0 to infinity.
TEST_P(ShortStftTest, InverseTakesHugePhasesAndMagnitudes) {
  const StftBatch batch{{20, 5}, 4, Utterances({2}, 1)};
  std::vector<float> x(9 * 22, -200.0f);
  x[4 * 22 + 11] = 1e9f, x[4 * 22] = 0, x[4 * 22 + 12] = -70000.5f, x[4 * 22 + 1] = 0;
  ref::Values spectra(9 * 22);
  spectra[4 * 22] = std::cos(std::sin(1e9));
  const double phase = std::sin(-70000.5);
  spectra[4 * 22 + 2] = std::cos(phase), spectra[4 * 22 + 3] = std::sin(phase);
  expect_close(inverse(batch, {x})[0], ref::inverse_stft(spectra, 20, 5), ref::Values(40, 2e-7));
  x[4 * 22 + 2] = 100;
  EXPECT_FALSE(std::isfinite(inverse(batch, {x})[0][20]));
}

TEST_P(ShortStftTest, HopsThatDoNotDivideAndSoundsTooShortToMirrorAreRefused) {
  for (const ShortStft stft : {ShortStft{20, 3}, ShortStft{66, 11}, ShortStft{20, 20}, ShortStft{21, 7}}) {
    const StftBatch batch{stft, 120, Utterances({1}, 1)};
    EXPECT_THROW(forward(batch, batch.samples()), Error) << stft.points << ' ' << stft.hop;
  }
  const StftBatch brief{{20, 5}, 2, Utterances({1}, 1)};  // 10 samples have no eleventh to mirror
  EXPECT_THROW(forward(brief, brief.samples()), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, ShortStftTest, testing::ValuesIn(every_machine()), name_of_machine);

class ShortStftOnCpus : public ShortStftTest {};

TEST_P(ShortStftOnCpus, TeamsOfAnySizeGiveTheSameBits) {
  const StftBatch batch{{20, 5}, 6, Utterances({1, 40, 3, 22}, 1)};
  const Rows x = batch.samples(), two = forward(batch, x), sound = inverse(batch, two);
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    ctx().team = &team;
    const Rows y = forward(batch, x), back = inverse(batch, two);
    for (size_t s = 0; s < x.size(); ++s) {
      expect_same_bits(y[s], two[s]);
      expect_same_bits(back[s], sound[s]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, ShortStftOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
