#include "tests/parity/kokoro_parity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <gtest/gtest.h>
#include <numbers>
#include <optional>
#include <vector>

#include "models/kokoro/decoder.h"
#include "models/kokoro/generator.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/style.h"
#include "models/kokoro/voice_pack.h"
#include "tests/parity/kokoro_fixture.h"
#include "text/utf8.h"
#include "weights/source.h"

namespace shoal::parity {
namespace {

// The reference in f32 is 1e-7 to 5e-6 away from itself in double, stage by stage (manifest.json).
constexpr double kKokoroStageTolerance = 2e-5;
// Given the same spectrum (the fixtures' README asks for 1e-4).
constexpr double kGeneratorTolerance = 2e-5;
constexpr double kSourceRms = 2e-3, kSourceMax = 1e-2;
constexpr double kTinyRe = 2e-3;  // of the largest, as far as sources may differ: below it a sign may too

void expect_near(KokoroFixture& fixture, const KokoroCase& example, const std::string& what,
                 const Values& got, const Values& golden, double tolerance) {
  fixture.tally.tried(example.name(), what, static_cast<int64_t>(golden.size()));
  EXPECT_EQ(got.size(), golden.size()) << what;
  if (got.size() != golden.size()) return;
  EXPECT_LE(distance(got, golden), tolerance) << what;
}

// The parts after the pitch, with the golden values as inputs.
struct Vocoder {
  explicit Vocoder(KokoroFixture& fixture)
      : source(weights::read_weights(fixture.checkpoint(), *fixture.ctx().team)),
        loader(*source, fixture.ctx(), DType::f32),
        styles(fixture.config().style_dim),
        decoder(loader, styles, fixture.config()),
        generator(loader, styles, fixture.config()) {
    styles.pack(loader);
  }
  std::unique_ptr<weights::TensorSource> source;
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

void check_stages(KokoroFixture& fixture, const kokoro::Kokoro& model, const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  StageRecorder recorder;
  const auto record = [&](std::string_view name, TensorView x) { recorder(name, x); };
  const kokoro::Tap tap = record;
  const std::array utterances = {example.utterance()};
  const auto spoken = model.speak(fixture.ctx(), utterances, &tap);
  fixture.tally.tried(example.name(), "pred_dur", std::ssize(example.durations()));
  ASSERT_EQ(spoken[0].durations, example.durations()) << "pred_dur";
  int compared = 0;
  for (const std::string& name : example.names()) {
    // What depends on the source is for the other links.
    if (name.starts_with("gen_") || name.starts_with("har") || name == "conv_post") continue;
    const StageRecorder::Stage* stage = recorder.find(name);
    if (!stage) continue;
    expect_near(fixture, example, name, stage->values, example.rows(name, stage->steps),
                kKokoroStageTolerance);
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
  EXPECT_EQ(differing, 0u) << "har, real bins, of " << firm;
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

void check_source(KokoroFixture& fixture, const Vocoder& vocoder, const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  ops::Context& ctx = fixture.ctx();
  const Workspace::Scope scope(*ctx.workspace);
  const kokoro::Layout layout({example.frames()});
  StageRecorder recorder;
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
  const Values& source = recorder.find("har_source")->values;
  ASSERT_GE(source.size(), golden.size()) << "har_source";
  const Values got = keep_rows(source, 1, golden.size());
  expect_near(fixture, example, "har_source", got, golden, kSourceRms);
  float largest = 0, worst = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    largest = std::max(largest, std::abs(golden[i]));
    worst = std::max(worst, std::abs(got[i] - golden[i]));
  }
  EXPECT_LE(worst, kSourceMax * largest) << "har_source";
  if (!example.has_hash_noise() || !fixture.has(example, "har")) return;
  const StageRecorder::Stage& har = *recorder.find("har");
  const Values golden_har = example.rows("har", har.steps);
  const int64_t bins = fixture.config().gen_istft_n_fft / 2 + 1;
  expect_near(fixture, example, "har", as_complex(har.values, bins), as_complex(golden_har, bins),
              kSourceRms);
  expect_real_bins(har.values, golden_har, bins);
}

void check_generator(KokoroFixture& fixture, const Vocoder& vocoder, const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  ops::Context& ctx = fixture.ctx();
  const Workspace::Scope scope(*ctx.workspace);
  const kokoro::Layout layout({example.frames()});
  StageRecorder recorder;
  const auto record = [&](std::string_view name, TensorView x) { recorder(name, x); };
  const kokoro::Tap tap = record;
  const kokoro::Rows rows = layout.rows(ctx, &tap), twice = rows.at(2);
  const Values& ref_s = example.style();
  const Tensor style = ops::resident(ctx, [&] {
    Tensor host(DType::f32, {1, fixture.config().style_dim});
    std::copy_n(ref_s.begin(), host.elements(), host.as<float>());
    return host;
  }());
  const TensorView affines = ctx.workspace->alloc(DType::f32, {1, vocoder.styles.columns()});
  vocoder.styles.forward(ctx, style, nullptr, affines);
  const Tensor f0 = place(twice, example.column("F0")), energy = place(twice, example.column("N"));
  const Tensor asr = place(rows, example.rows("asr", example.frames()));
  const kokoro::Rows spectrum = twice.at(2 * vocoder.generator.spectrum_rate(), 1);
  const Tensor har = place(spectrum, example.rows("har", spectrum.segments.rows(0)));
  const TensorView features = twice.alloc(vocoder.decoder.outputs());
  vocoder.decoder.forward(rows, affines, asr, f0, energy, features);
  const kokoro::Rows samples = twice.at(2 * vocoder.generator.samples_per_row());
  const TensorView audio = ctx.workspace->alloc(DType::f32, {samples.count()});
  vocoder.generator.forward(twice, affines, features, har, audio);
  expect_near(fixture, example, "audio", rows_of(samples, audio), example.column("audio"),
              kGeneratorTolerance);
  for (const std::string& name : example.names()) {
    if (!name.starts_with("gen_") && name != "conv_post") continue;
    const StageRecorder::Stage* stage = recorder.find(name);
    if (!stage) continue;
    Values got = stage->values;
    int64_t steps = stage->steps;
    if (name == "gen_ups1") {  // the golden one is from before the mirror image
      got.erase(got.begin(), got.begin() + static_cast<int64_t>(got.size()) / steps);
      --steps;
    }
    expect_near(fixture, example, name, got, example.rows(name, steps), kGeneratorTolerance);
  }
}

// As far as the reference in f32 is from itself in double, thrice; the tail of a long one six times (README).
// 480.
void check_speech(KokoroFixture& fixture, const kokoro::Kokoro& model, const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  const kokoro::Spoken spoken = fixture.speak(model, example);
  ASSERT_EQ(spoken.durations, example.durations());
  const Values& got = spoken.samples;
  const double room = example.own_deviation("audio");
  if (example.contains("audio") || !example.contains("audio_head")) {
    expect_near(fixture, example, "audio", got, example.column("audio"), 3 * room);
    return;
  }
  const Values head = example.column("audio_head"), tail = example.column("audio_tail");
  ASSERT_GE(got.size(), head.size() + tail.size());
  expect_near(fixture, example, "audio_head", {got.begin(), got.begin() + std::ssize(head)}, head, 3 * room);
  expect_near(fixture, example, "audio_tail", {got.end() - std::ssize(tail), got.end()}, tail, 6 * room);
}

// The phonemes' ids between two pads; phonemes outside the vocabulary are dropped.
std::vector<int32_t> ids_of(const kokoro::Config& config, const std::string& phonemes) {
  std::vector<int32_t> ids = {0};
  for (size_t at = 0; at < phonemes.size(); at += text::character_bytes(phonemes[at])) {
    if (const auto id = config.id_of(text::code_point_at(phonemes, at))) ids.push_back(*id);
  }
  ids.push_back(0);
  return ids;
}

// The file of a voice in the folder, if there is one.
std::optional<std::string> voice_file(const std::string& dir, const std::string& voice) {
  for (const char* ending : {".pt", ".bin"}) {
    const std::string path = dir + "/voices/" + voice + ending;
    if (is_regular_file(path)) return path;
  }
  return std::nullopt;
}

void check_inputs(KokoroFixture& fixture, const KokoroCase& example) {
  SCOPED_TRACE(example.name());
  const std::string phonemes = example.entry().at("phonemes").as_string();
  text::require_utf8(phonemes);
  EXPECT_EQ(ids_of(fixture.config(), phonemes), example.ids()) << "input_ids of " << phonemes;
  fixture.tally.tried(example.name(), "input_ids", std::ssize(example.ids()));
  const std::optional<std::string> file = voice_file(fixture.dir(), example.entry().at("voice").as_string());
  if (!file) return fixture.tally.absent(example.name(), "voice");
  const kokoro::VoicePack voice = kokoro::read_voice(*file, kokoro::inspect_voices(*file).format, "");
  const std::span<const float> row = voice.row(text::count_characters(phonemes));
  EXPECT_TRUE(std::ranges::equal(row, example.style())) << "ref_s, of " << *file;
  fixture.tally.tried(example.name(), "ref_s", std::ssize(example.style()));
}

}  // namespace

void check_kokoro_inputs(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, phonemes and voice");
  for (const KokoroCase& example : fixture.cases()) check_inputs(fixture, example);
  fixture.tally.report_something();
}

void check_kokoro_stages(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, stages");
  const kokoro::Kokoro model = fixture.model();
  for (const KokoroCase& example : fixture.cases()) check_stages(fixture, model, example);
  fixture.tally.report_something();
}

void check_kokoro_source(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, source");
  const Vocoder vocoder(fixture);
  for (const KokoroCase& example : fixture.cases()) {
    if (fixture.has(example, "har_source")) check_source(fixture, vocoder, example);
  }
  fixture.tally.report_something();
}

void check_kokoro_generator(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, generator");
  const Vocoder vocoder(fixture);
  for (const KokoroCase& example : fixture.cases()) {
    if (fixture.has(example, "har") && fixture.has(example, "asr"))
      check_generator(fixture, vocoder, example);
  }
  fixture.tally.report_something();
}

void check_kokoro_speech(const std::string& dir) {
  SCOPED_TRACE(dir);
  KokoroFixture fixture(dir, "Kokoro, speech");
  const kokoro::Kokoro model = fixture.model();
  for (const KokoroCase& example : fixture.cases()) check_speech(fixture, model, example);
  fixture.tally.report_something();
}

}  // namespace shoal::parity
