#include "tests/parity/kokoro_parity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

#include "base/json.h"
#include "models/kokoro/decoder.h"
#include "models/kokoro/generator.h"
#include "models/kokoro/kokoro.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/style.h"
#include "models/kokoro/weight_source.h"
#include "ops/device_testing.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"

namespace shoal::parity {
namespace {

// The reference in f32 is 1e-7 to 5e-6 away from itself in double, stage by stage (manifest.json).
constexpr double kStageTolerance = 2e-5;
// Given the same spectrum (the fixtures' README asks for 1e-4).
constexpr double kGeneratorTolerance = 2e-5;
constexpr double kSourceRms = 2e-3, kSourceMax = 1e-2;
constexpr double kTinyRe = 2e-3;  // of the largest, as far as sources may differ: below it a sign may too

using Values = std::vector<float>;

double rms(const Values& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, x.size())));
}

// Norm of the difference over that of the golden.
double distance(const Values& got, const Values& golden) {
  Values difference(golden.size());
  for (size_t i = 0; i < golden.size(); ++i) difference[i] = got[i] - golden[i];
  return rms(difference) / std::max(1e-30, rms(golden));
}

bool expect_near(const std::string& what, const Values& got, const Values& golden, double tolerance) {
  EXPECT_EQ(got.size(), golden.size()) << what;
  if (got.size() != golden.size()) return false;
  const double found = distance(got, golden);
  EXPECT_LE(found, tolerance) << what;
  return found <= tolerance;
}

// The fixtures' noise (README): a hash of sample * 9 + harmonic.
float hash_noise(uint32_t i) {
  i ^= i >> 16, i *= 0x7feb352dU;
  i ^= i >> 15, i *= 0x846ca68bU;
  i ^= i >> 16;
  const float unit = static_cast<float>(static_cast<double>(i >> 8) * 0x1p-23 - 1);
  return unit * std::numbers::sqrt3_v<float>;
}

class Case {
 public:
  Case(const std::string& dir, const std::string& name, const Json& entry)
      : name_(name),
        goldens_(weights::Checkpoint::open(dir + "/goldens/" + name + ".safetensors")),
        speed_(static_cast<float>(entry.at("speed").as_number())),
        hash_(entry.at("noise").as_string() == "hash"),
        deviation_(entry.at("f32_vs_f64")) {
    for (const float id : column("input_ids")) ids_.push_back(static_cast<int32_t>(id));
    for (const float frames : column("pred_dur")) durations_.push_back(static_cast<int32_t>(frames));
  }

  const std::string& name() const { return name_; }
  bool has_hash_noise() const { return hash_; }
  bool contains(const std::string& tensor) const { return goldens_.contains(tensor); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& stored : goldens_.tensors()) all.push_back(stored.name);
    return all;
  }
  const std::vector<int32_t>& durations() const { return durations_; }
  int32_t frames() const { return std::accumulate(durations_.begin(), durations_.end(), 0); }
  // As stored; integers as floats.
  Values column(const std::string& tensor) const {
    const TensorView view = *goldens_.find(tensor);
    Values values(static_cast<size_t>(view.elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          view.dtype() == DType::i64 ? static_cast<float>(view.as<int64_t>()[i]) : view.as<float>()[i];
    }
    return values;
  }
  // Channels last, where it is stored as [1, channels, time] with that many steps of time; else as it is.
  Values rows(const std::string& tensor, int64_t steps) const {
    const TensorView view = *goldens_.find(tensor);
    const Values stored = column(tensor);
    const bool square = view.rank() == 3 && view.dim(1) == steps && tensor.find("_blk") == std::string::npos;
    if (view.rank() != 3 || view.dim(2) != steps || square) return stored;
    Values turned(stored.size());
    const int64_t channels = view.dim(1);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < steps; ++t)
        turned[static_cast<size_t>(t * channels + c)] = stored[static_cast<size_t>(c * steps + t)];
    }
    return turned;
  }
  kokoro::Utterance utterance(const Values& style) const {
    return {.ids = ids_, .style = style, .speed = speed_};
  }
  // For a batch of this case alone, whose first sample is number `begin` of `total`.
  Tensor noise(int64_t begin, int64_t total, int64_t samples) const {
    Tensor given = Tensor::zeros(DType::f32, {total, ops::kHarmonics});
    if (!hash_) return given;
    for (int64_t i = 0; i < samples * ops::kHarmonics; ++i)
      given.as<float>()[begin * ops::kHarmonics + i] = hash_noise(static_cast<uint32_t>(i));
    return given;
  }
  // How far the reference in f32 is from itself in double.
  double own_deviation(const std::string& tensor) const {
    const Json* found = deviation_.find(tensor);
    return found ? found->at("rel_rms").as_number() : 0;
  }

 private:
  std::string name_;
  weights::Checkpoint goldens_;
  float speed_;
  bool hash_;
  Json deviation_;
  std::vector<int32_t> ids_, durations_;
};

// What taps saw, without gaps.
class Recorder {
 public:
  void operator()(std::string_view name, TensorView x) {
    Stage& stage = stages_[std::string(name)];
    stage.steps = x.dim(0);
    stage.values.assign(x.as<float>(), x.as<float>() + x.elements());
  }
  struct Stage {
    int64_t steps = 0;
    Values values;
  };
  const Stage* find(const std::string& name) const {
    const auto found = stages_.find(name);
    return found == stages_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Stage> stages_;
};

// A folder's model, its cases, and what running it needs.
class Fixture {
 public:
  explicit Fixture(const std::string& dir)
      : checkpoint_(weights::Checkpoint::open(dir + "/kokoro-v1_0.pth")),
        config_(kokoro::Config::read(dir + "/config.json")) {
    weights::normalise_kokoro_names(checkpoint_);
    config_.take_widths(checkpoint_);
    const Json manifest = Json::read_file(dir + "/manifest.json");
    for (const auto& [name, entry] : manifest.at("cases").as_object()) {
      // A tree may hold some of them.
      if (std::filesystem::is_regular_file(dir + "/goldens/" + name + ".safetensors"))
        cases_.emplace_back(dir, name, entry);
    }
  }

  const std::vector<Case>& cases() const { return cases_; }
  const kokoro::Config& config() const { return config_; }
  ops::Context& ctx() { return machine_.context; }
  const weights::Checkpoint& checkpoint() const { return checkpoint_; }
  kokoro::Kokoro model() { return kokoro::Kokoro::load(checkpoint_, config_, ctx(), DType::f32); }

 private:
  ops::TestMachine machine_{2};
  weights::Checkpoint checkpoint_;
  kokoro::Config config_;
  std::vector<Case> cases_;
};

// The parts behind the pitch, which the golden values are fed to.
struct Vocoder {
  explicit Vocoder(Fixture& fixture)
      : source(kokoro::read_weights(fixture.checkpoint(), *fixture.ctx().team)),
        loader(*source, fixture.ctx(), DType::f32),
        styles(fixture.config().style_dim),
        decoder(loader, styles, fixture.config()),
        generator(loader, styles, fixture.config()) {
    styles.pack(loader);
  }
  std::unique_ptr<kokoro::WeightSource> source;
  kokoro::Loader loader;
  kokoro::StyleTable styles;
  kokoro::Decoder decoder;
  kokoro::Generator generator;
};

// Golden rows of one utterance in a buffer with its gaps.
Tensor place(const kokoro::Rows& rows, const Values& values) {
  const int64_t count = rows.segments.rows(0), channels = static_cast<int64_t>(values.size()) / count;
  Tensor host = Tensor::zeros(DType::f32, {rows.count(), channels});
  std::ranges::copy(values, host.view().row<float>(rows.segments.begin(0)));
  return ops::resident(*rows.ctx, std::move(host));
}

// The rows of the one utterance.
Values rows_of(const kokoro::Rows& rows, TensorView x) {
  const Tensor host = ops::to_host(*rows.ctx, x);
  const int64_t width = x.rank() == 1 ? 1 : x.dim(1);
  const float* const begin = host.as<float>() + rows.segments.begin(0) * width;
  return {begin, begin + rows.segments.rows(0) * width};
}

void check_stages(Fixture& fixture, const kokoro::Kokoro& model, const Case& example) {
  SCOPED_TRACE(example.name());
  Recorder recorder;
  const auto record = [&](std::string_view name, TensorView x) { recorder(name, x); };
  const kokoro::Tap tap = record;
  const Values style = example.column("ref_s");
  const std::array utterances = {example.utterance(style)};
  const auto spoken = model.speak(fixture.ctx(), utterances, &tap);
  EXPECT_EQ(spoken[0].durations, example.durations());
  if (spoken[0].durations != example.durations()) return;
  int compared = 0;
  for (const std::string& name : example.names()) {
    // What depends on the source is for the other links.
    if (name.starts_with("gen_") || name.starts_with("har") || name == "conv_post") continue;
    const Recorder::Stage* stage = recorder.find(name);
    if (!stage) continue;
    expect_near(name, stage->values, example.rows(name, stage->steps), kStageTolerance);
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

// Bins 0 and the last of every frame are real: phases 0 or +pi, unless the value is tiny.
void expect_real_bins(const Values& got, const Values& golden, int64_t bins) {
  double largest = 0;
  for (size_t i = 0; i < golden.size(); ++i) largest = std::max(largest, static_cast<double>(golden[i]));
  const auto width = static_cast<size_t>(2 * bins);
  size_t differing = 0, firm = 0;
  for (size_t row = 0; row < golden.size() / width; ++row) {
    for (const size_t bin : {size_t{0}, static_cast<size_t>(bins) - 1}) {
      const size_t magnitude = row * width + bin, phase = magnitude + static_cast<size_t>(bins);
      EXPECT_TRUE(got[phase] == 0 || got[phase] == std::numbers::pi_v<float>) << row << " " << got[phase];
      if (golden[magnitude] < kTinyRe * largest) continue;
      ++firm;
      differing += got[phase] != golden[phase];
    }
  }
  EXPECT_EQ(differing, 0u) << "of " << firm;
}

Values as_complex(const Values& har, int64_t bins) {
  Values parts;
  const auto width = static_cast<size_t>(2 * bins);
  for (size_t row = 0; row < har.size() / width; ++row) {
    for (size_t bin = 0; bin < static_cast<size_t>(bins); ++bin) {
      const size_t at = row * width + bin;
      const auto value = std::polar(har[at], har[at + static_cast<size_t>(bins)]);
      parts.insert(parts.end(), {value.real(), value.imag()});
    }
  }
  return parts;
}

void check_source(Fixture& fixture, const Vocoder& vocoder, const Case& example) {
  SCOPED_TRACE(example.name());
  ops::Context& ctx = fixture.ctx();
  const Workspace::Scope scope(*ctx.workspace);
  const kokoro::Layout layout({example.frames()});
  Recorder recorder;
  const auto record = [&](std::string_view name, TensorView x) { recorder(name, x); };
  const kokoro::Tap tap = record;
  const kokoro::Rows rows = layout.rows(ctx, &tap).at(2);
  const int64_t per_row = vocoder.generator.samples_per_row();
  const Tensor f0 = place(rows, example.column("F0"));
  const Tensor noise =
      ops::resident(ctx, example.noise(rows.segments.begin(0) * per_row, rows.count() * per_row,
                                       rows.segments.rows(0) * per_row));
  vocoder.generator.excite(rows, f0, {.given = noise});
  const Values golden = example.column("har_source");
  const Values& got = recorder.find("har_source")->values;
  expect_near("har_source", got, golden, kSourceRms);
  float largest = 0, worst = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    largest = std::max(largest, std::abs(golden[i]));
    worst = std::max(worst, std::abs(got[i] - golden[i]));
  }
  EXPECT_LE(worst, kSourceMax * largest);
  if (!example.contains("har") || !example.has_hash_noise()) return;
  const Recorder::Stage& har = *recorder.find("har");
  const Values golden_har = example.rows("har", har.steps);
  const int64_t bins = fixture.config().gen_istft_n_fft / 2 + 1;
  expect_near("har", as_complex(har.values, bins), as_complex(golden_har, bins), kSourceRms);
  expect_real_bins(har.values, golden_har, bins);
}

void check_generator(Fixture& fixture, const Vocoder& vocoder, const Case& example) {
  SCOPED_TRACE(example.name());
  ops::Context& ctx = fixture.ctx();
  const Workspace::Scope scope(*ctx.workspace);
  const kokoro::Layout layout({example.frames()});
  Recorder recorder;
  const auto record = [&](std::string_view name, TensorView x) { recorder(name, x); };
  const kokoro::Tap tap = record;
  const kokoro::Rows rows = layout.rows(ctx, &tap), twice = rows.at(2);
  const Values ref_s = example.column("ref_s");
  const Tensor style = ops::resident(ctx, [&] {
    Tensor host(DType::f32, {1, fixture.config().style_dim});
    std::copy_n(ref_s.begin(), host.elements(), host.as<float>());
    return host;
  }());
  const TensorView affines = vocoder.styles.forward(ctx, style);
  const Tensor f0 = place(twice, example.column("F0")), energy = place(twice, example.column("N"));
  const Tensor asr = place(rows, example.rows("asr", example.frames()));
  const kokoro::Rows spectrum = twice.at(2 * vocoder.generator.spectrum_rate(), 1);
  const Tensor har = place(spectrum, example.rows("har", spectrum.segments.rows(0)));
  const TensorView features = twice.alloc(vocoder.decoder.outputs());
  vocoder.decoder.forward(rows, affines, asr, f0, energy, features);
  const kokoro::Rows samples = twice.at(2 * vocoder.generator.samples_per_row());
  const TensorView audio = ctx.workspace->alloc(DType::f32, {samples.count()});
  vocoder.generator.forward(twice, affines, features, har, audio);
  expect_near("audio", rows_of(samples, audio), example.column("audio"), kGeneratorTolerance);
  for (const std::string& name : example.names()) {
    if (!name.starts_with("gen_") && name != "conv_post") continue;
    const Recorder::Stage& stage = *recorder.find(name);
    Values got = stage.values;
    int64_t steps = stage.steps;
    if (name == "gen_ups1") {  // the golden one is from before the mirror image
      got.erase(got.begin(), got.begin() + static_cast<int64_t>(got.size()) / steps);
      --steps;
    }
    expect_near(name, got, example.rows(name, steps), kGeneratorTolerance);
  }
}

// Spectral distance for those too long for a wave to agree: mean log-magnitude difference in dB of frames of
// 480.
void check_speech(Fixture& fixture, const kokoro::Kokoro& model, const Case& example) {
  SCOPED_TRACE(example.name());
  const Values style = example.column("ref_s");
  const std::array utterances = {example.utterance(style)};
  const int64_t per_frame = model.samples_per_frame();
  const kokoro::Layout layout({example.frames()});
  const Tensor noise = ops::resident(
      fixture.ctx(),
      example.noise(layout.begin(0) * per_frame, layout.total() * per_frame, example.frames() * per_frame));
  const ops::SourceNoise given{.given = noise};
  const auto spoken = model.speak(fixture.ctx(), utterances, nullptr, &given);
  ASSERT_EQ(spoken[0].durations, example.durations());
  const Values& got = spoken[0].samples;
  const double room = example.own_deviation("audio");
  if (example.contains("audio")) {
    expect_near("audio", got, example.column("audio"), 3 * room);
    return;
  }
  const Values head = example.column("audio_head"), tail = example.column("audio_tail");
  ASSERT_GE(got.size(), head.size() + tail.size());
  expect_near("audio_head", {got.begin(), got.begin() + std::ssize(head)}, head, 3 * room);
  expect_near("audio_tail", {got.end() - std::ssize(tail), got.end()}, tail, 6 * room);
}

}  // namespace

void check_kokoro_stages(const std::string& dir) {
  Fixture fixture(dir);
  const kokoro::Kokoro model = fixture.model();
  for (const Case& example : fixture.cases()) check_stages(fixture, model, example);
}

void check_kokoro_source(const std::string& dir) {
  Fixture fixture(dir);
  const Vocoder vocoder(fixture);
  for (const Case& example : fixture.cases()) {
    if (example.contains("har_source")) check_source(fixture, vocoder, example);
  }
}

void check_kokoro_generator(const std::string& dir) {
  Fixture fixture(dir);
  const Vocoder vocoder(fixture);
  for (const Case& example : fixture.cases()) {
    if (example.contains("har") && example.contains("asr")) check_generator(fixture, vocoder, example);
  }
}

void check_kokoro_speech(const std::string& dir) {
  Fixture fixture(dir);
  const kokoro::Kokoro model = fixture.model();
  for (const Case& example : fixture.cases()) check_speech(fixture, model, example);
}

void check_kokoro_fixture(const std::string& dir) {
  check_kokoro_stages(dir);
  check_kokoro_source(dir);
  check_kokoro_generator(dir);
  check_kokoro_speech(dir);
}

}  // namespace shoal::parity
