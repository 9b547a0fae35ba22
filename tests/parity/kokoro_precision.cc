// What is lost where the decoder and the generator compute in bfloat16. What comes before is f32 in both.
//
// Every product x w of a matrix is of two factors rounded to bfloat16, which keeps 8 bits of a significand:
// each is off by at most 2^-8 of its value. Errors of a sum's terms grow with the root of their number, but
// the sum may cancel, snakes and norms enlarge what they are given, and layers follow on layers: how far a
// stage is off depends on the weights. So the network itself says it. In f32, with each rounded weight off by
// all of 2^-8 of its value, up or down at random, a stage moves by some relative distance: the share of one
// factor. The other's is as large, since it matters to a term's error which size it has and not which factor
// it comes from, and independent. Together they are sqrt(2) times that: the bound. Rounding costs less. An
// error is uniform in half a unit in the last place: 1 / sqrt(3) of the bound of its binade, and significands
// m spread over [1, 2) as numbers' do, evenly by their logarithm, take sqrt(mean(1 / m^2)) = 0.74 of 2^-8. So
// 0.42 of the bound are expected, and found where layers are not hidden; behind the norms over time, which
// hide the constant part of what a weight's error does but not of an input's, up to 0.7.
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <string_view>
#include <utility>

#include "tests/parity/kokoro_fixture.h"
#include "tests/parity/kokoro_parity.h"
#include "tests/parity/spectral_distance.h"
#include "weights/random_values.h"
#include "weights/source.h"

namespace shoal::parity {
namespace {

constexpr float kRounding = 0x1p-8f;  // half a unit in the last place of 1
constexpr double kFactors = 2;        // of a product, both rounded
constexpr std::array<uint64_t, 2> kSeeds = {1, 2};
// "auto" takes bfloat16 for a checkpoint in f32 because it is lost in what the drawn noise changes: the sound
// is off by at most so much of what lies between two seeds.
constexpr double kShareOfSeeds = 0.1;

constexpr std::string_view kStages[] = {"dec_asr_res",    "dec_encode",    "dec_blk0",   "dec_blk1",
                                        "dec_blk2",       "dec_blk3",      "gen_ups0",   "gen_noiseconv0",
                                        "gen_noiseres0",  "gen_res0_0",    "gen_res0_1", "gen_res0_2",
                                        "gen_noiseconv1", "gen_noiseres1", "gen_ups1",   "gen_res1_0",
                                        "gen_res1_1",     "gen_res1_2",    "conv_post"};

struct Run {
  StageRecorder stages;
  kokoro::Spoken spoken;
};

Run run(KokoroFixture& fixture, const kokoro::Kokoro& model, const KokoroCase& example) {
  Run result;
  const auto record = [&](std::string_view name, TensorView x) { result.stages(name, x); };
  const kokoro::Tap tap = record;
  result.spoken = fixture.speak(model, example, &tap);
  EXPECT_EQ(result.spoken.durations, example.durations());
  return result;
}

// How far a run is from the one in f32: relative for every stage, in dB for the sound.
std::vector<double> distances(const Run& other, const Run& exact) {
  std::vector<double> all;
  for (const std::string_view stage : kStages) {
    const std::string name(stage);
    all.push_back(distance(other.stages.find(name)->values, exact.stages.find(name)->values));
  }
  all.push_back(spectral_distance_db(other.spoken.samples, exact.spoken.samples));
  return all;
}

std::string name_of_distance(size_t index) {
  return index < std::size(kStages) ? std::string(kStages[index]) : "sound (dB)";
}

// Whether the kernel of that name is rounded to bfloat16: those of the decoder and the generator, but the
// depthwise ones and those of one channel.
bool is_rounded(const std::string& name) {
  return name.starts_with("decoder.") && !name.starts_with("decoder.F0_conv") &&
         !name.starts_with("decoder.N_conv") && !name.ends_with(".pool");
}

// The weights of another source with some kernels changed.
class ChangedKernels final : public weights::TensorSource {
 public:
  using Change = std::function<void(const std::string& name, Tensor& kernel)>;
  ChangedKernels(weights::TensorSource& source, Change change)
      : source_(source), change_(std::move(change)) {}
  bool contains(std::string_view name) const override { return source_.contains(name); }
  weights::Weight tensor(const std::string& name, const Shape& shape) override {
    Tensor stored = weights::to_f32(source_.tensor(name, shape), nullptr);
    if (name.find(".noise_convs.") != std::string::npos && name.ends_with(".weight")) change_(name, stored);
    return weights::Weight(std::move(stored));
  }
  weights::Weight convolution(const std::string& name, const Shape& shape) override {
    Tensor kernel = weights::to_f32(source_.convolution(name, shape), nullptr);
    change_(name, kernel);
    return weights::Weight(std::move(kernel));
  }

 private:
  weights::TensorSource& source_;
  const Change change_;
};

// Every rounded weight off by as much as rounding may cost.
ChangedKernels shaken(weights::TensorSource& source, uint64_t seed, ThreadTeam& team) {
  return {source, [values = weights::RandomValues(seed, team)](const std::string& name, Tensor& kernel) {
            if (!is_rounded(name)) return;
            const Tensor signs = values.draw(name, kernel.shape(), {0, 1});
            for (int64_t i = 0; i < kernel.elements(); ++i)
              kernel.as<float>()[i] *= 1 + std::copysign(kRounding, signs.as<float>()[i]);
          }};
}

// One convolution, or several with the same prefix, with four bits less than bfloat16 has.
ChangedKernels coarse(weights::TensorSource& source, const std::string& prefix) {
  return {source, [prefix](const std::string& name, Tensor& kernel) {
            if (!name.starts_with(prefix)) return;
            for (float& weight : kernel.span<float>()) {
              int exponent = 0;
              const float significand = std::frexp(weight, &exponent);
              weight = std::ldexp(std::round(significand * 16) / 16, exponent);
            }
          }};
}

class Precision {
 public:
  explicit Precision(KokoroFixture& fixture)
      : fixture_(fixture),
        source_(weights::read_weights(fixture.checkpoint(), *fixture.ctx().team)),
        exact_(fixture.model()) {
    for (const uint64_t seed : kSeeds) {
      ChangedKernels weights = shaken(*source_, seed, *fixture.ctx().team);
      shaken_.push_back(load(weights, DType::f32));
    }
  }

  weights::TensorSource& source() { return *source_; }
  kokoro::Kokoro load(weights::TensorSource& weights, DType dtype) {
    return kokoro::Kokoro::from(weights, fixture_.config(), fixture_.ctx(), dtype);
  }
  Run exact(const KokoroCase& example) { return run(fixture_, exact_, example); }

  // What lies between the sounds of two seeds in f32, in dB.
  double between_seeds(const KokoroCase& example) {
    std::array<std::vector<float>, kSeeds.size()> sounds;
    for (size_t i = 0; i < kSeeds.size(); ++i) {
      kokoro::Utterance utterance = example.utterance();
      utterance.seed = kSeeds[i];
      sounds[i] = exact_.speak(fixture_.ctx(), {&utterance, 1}).front().samples;
    }
    return spectral_distance_db(sounds[0], sounds[1]);
  }

  // Of distances(): the root of the sum of the factors' squares, each the mean over the seeds.
  std::vector<double> bounds(const KokoroCase& example, const Run& exact_run) {
    std::vector<double> bounds(std::size(kStages) + 1);
    for (const kokoro::Kokoro& model : shaken_) {
      const std::vector<double> found = distances(run(fixture_, model, example), exact_run);
      for (size_t i = 0; i < bounds.size(); ++i)
        bounds[i] += kFactors * found[i] * found[i] / std::size(kSeeds);
    }
    for (double& bound : bounds) bound = std::sqrt(bound);
    return bounds;
  }

 private:
  KokoroFixture& fixture_;
  const std::unique_ptr<weights::TensorSource> source_;
  const kokoro::Kokoro exact_;
  std::vector<kokoro::Kokoro> shaken_;
};

// The official sound is as far from ours in f32 as it is, and from there the bound leads on: distances of
// spectra add at most.
void check_official_sound(KokoroFixture& fixture, const KokoroCase& example, const Run& bf16, const Run& f32,
                          double bound_db) {
  if (!fixture.has(example, "audio")) return;
  if (!example.has_hash_noise()) return;  // a source without noise has phases that nothing determines
  const Values audio = example.column("audio");
  EXPECT_LE(spectral_distance_db(bf16.spoken.samples, audio),
            spectral_distance_db(f32.spoken.samples, audio) + bound_db)
      << "audio";
  fixture.tally.tried(example.name(), "audio", std::ssize(audio));
}

void check_losses(KokoroFixture& fixture, Precision& precision, const kokoro::Kokoro& rounded,
                  const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  const Run f32 = precision.exact(example), bf16 = run(fixture, rounded, example);
  const std::vector<double> found = distances(bf16, f32), bounds = precision.bounds(example, f32);
  std::string line;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string name = name_of_distance(i);
    EXPECT_LE(found[i], bounds[i]) << name;
    line += concat(line.empty() ? " " : ", ", name, " ", std::lround(100 * found[i] / bounds[i]), " %");
    const bool stage = i < std::size(kStages);
    fixture.tally.tried(example.name(), name,
                        stage ? std::ssize(f32.stages.find(name)->values) : std::ssize(f32.spoken.samples));
  }
  std::printf("%s: %s: bf16, of the bound:%s\n", fixture.dir().c_str(), example.name().c_str(), line.c_str());
  const double seeds = precision.between_seeds(example);
  EXPECT_LE(found.back(), kShareOfSeeds * seeds) << "of what lies between two seeds";
  std::printf("%s: %s: bf16 %.3f dB off, another seed %.3f dB\n", fixture.dir().c_str(),
              example.name().c_str(), found.back(), seeds);
  check_official_sound(fixture, example, bf16, f32, bounds.back());
}

}  // namespace

void check_kokoro_bf16(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, bf16");
  Precision precision(fixture);
  const kokoro::Kokoro rounded = precision.load(precision.source(), DType::bf16);
  for (const KokoroCase& example : fixture.cases()) check_losses(fixture, precision, rounded, example);
  // The bounds are tight enough to notice four bits of one convolution, or of a snake block's six, each of
  // which adds little to what it is added to.
  const KokoroCase& example = fixture.cases().front();
  const Run f32 = precision.exact(example);
  const std::vector<double> bounds = precision.bounds(example, f32);
  for (const char* layers : {"encode.conv1", "decode.3.conv1", "generator.ups.0", "generator.resblocks.1.",
                             "generator.resblocks.4.", "generator.conv_post"}) {
    ChangedKernels weights = coarse(precision.source(), std::string("decoder.") + layers);
    const std::vector<double> found =
        distances(run(fixture, precision.load(weights, DType::bf16), example), f32);
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i) worst = std::max(worst, found[i] / bounds[i]);
    EXPECT_GT(worst, 1) << layers;
    std::printf("%s: bf16 with four bits less in %s: %.2f of the bound\n", dir.c_str(), layers, worst);
  }
  fixture.tally.report_something();
}

}  // namespace shoal::parity
