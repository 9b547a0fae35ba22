// The sound of an utterance depends only on the utterance.
#include "models/kokoro/kokoro.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/error.h"
#include "models/kokoro/small_config_testing.h"
#include "models/kokoro/step_memory.h"
#include "models/kokoro/style.h"
#include "ops/device_testing.h"

namespace shoal::kokoro {
namespace {

struct Line {
  std::vector<int32_t> ids;
  std::vector<float> style;
  float speed = 1;
  uint64_t seed = 0;
  Utterance utterance() const { return {.ids = ids, .style = style, .speed = speed, .seed = seed}; }
};

Line random_line(const Config& config, int phonemes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Line line{.ids = {0}, .speed = 0.7f + 0.1f * static_cast<float>(random() % 10), .seed = random()};
  for (int i = 0; i < phonemes; ++i)
    line.ids.push_back(1 + static_cast<int32_t>(random() % static_cast<uint64_t>(config.n_token - 1)));
  line.ids.push_back(0);
  for (int64_t i = 0; i < 2 * config.style_dim; ++i) line.style.push_back(0.3f * normal(random));
  return line;
}

std::vector<Spoken> speak(const Kokoro& model, ops::Context& ctx, const std::vector<Line>& lines) {
  std::vector<Utterance> utterances;
  for (const Line& line : lines) utterances.push_back(line.utterance());
  return model.speak(ctx, utterances);
}

Config with_long_texts(Config config) {
  config.max_positions = 64;
  return config;
}

// Whatever lay in the arena before.
void poison(Workspace& workspace) {
  const Workspace::Scope scope(workspace);
  constexpr int64_t kFloats = int64_t{8} << 20;
  const std::vector<float> garbage(kFloats, std::numeric_limits<float>::quiet_NaN());
  copy(TensorView::of(garbage.data(), DType::f32, {kFloats}), workspace.alloc(DType::f32, {kFloats}));
}

class KokoroBatches : public ::testing::TestWithParam<DType> {
 protected:
  ops::TestMachine machine_{2};
  const Config config_ = with_long_texts(small_config());
  const Kokoro model_ = Kokoro::random(config_, machine_.context, GetParam(), 7);

  // As without the memory, each of these three times: run, recorded and replayed.
  void expect_same_sound(const StepMemory& memory, ops::StepGraphs& graphs,
                         const std::vector<std::vector<Line>>& batches) {
    ops::Context& ctx = machine_.context;
    std::vector<std::vector<Spoken>> plain;
    for (const std::vector<Line>& lines : batches) plain.push_back(speak(model_, ctx, lines));
    ctx.graphs = &graphs;
    for (int round = 0; round < 3; ++round)
      for (size_t b = 0; b < batches.size(); ++b) {
        std::vector<Utterance> utterances;
        for (const Line& line : batches[b]) utterances.push_back(line.utterance());
        poison(machine_.workspace);
        const std::vector<Spoken> spoken = model_.speak(ctx, memory, utterances);
        ASSERT_EQ(spoken.size(), plain[b].size());
        for (size_t i = 0; i < spoken.size(); ++i) {
          EXPECT_EQ(spoken[i].durations, plain[b][i].durations);
          EXPECT_TRUE(spoken[i].samples == plain[b][i].samples) << round << ": " << b << ", " << i;
        }
      }
    ctx.graphs = nullptr;
  }
};

TEST_P(KokoroBatches, AnUtteranceIsTheSameAloneAndInAnyBatch) {
  std::vector<Line> lines;
  for (uint64_t i = 0; i < 16; ++i)
    lines.push_back(random_line(config_, 1 + static_cast<int>(i * i * 37 % 61), i));
  std::vector<Spoken> alone;
  for (const Line& line : lines) {
    poison(machine_.workspace);
    alone.push_back(speak(model_, machine_.context, {line})[0]);
    for (const float sample : alone.back().samples) ASSERT_TRUE(std::isfinite(sample));
  }
  for (const size_t size : {2, 7, 16}) {
    for (size_t first = 0; first < lines.size(); first += size) {
      const std::vector<Line> batch(
          lines.begin() + static_cast<ptrdiff_t>(first),
          lines.begin() + static_cast<ptrdiff_t>(std::min(first + size, lines.size())));
      poison(machine_.workspace);
      const std::vector<Spoken> spoken = speak(model_, machine_.context, batch);
      for (size_t i = 0; i < batch.size(); ++i) {
        EXPECT_EQ(spoken[i].durations, alone[first + i].durations);
        EXPECT_TRUE(spoken[i].samples == alone[first + i].samples) << size << ": " << first + i;
      }
    }
  }
}

// Another text and pace for the recordings of a line: of one token more, and of another number of frames.
Line with_the_steps_of(const Line& line, const Kokoro& model, ops::Context& ctx) {
  const auto frames = [&](const Line& one) { return speak(model, ctx, {one})[0].frames(); };
  Line other = random_line(model.config(), static_cast<int>(line.ids.size()) - 1, 77);
  EXPECT_EQ(Layout::recorded_total(std::ssize(line.ids)), Layout::recorded_total(std::ssize(other.ids)));
  const int64_t of_line = frames(line);
  const auto fits = [&](int64_t n) {
    return n != of_line && Layout::recorded_total(n) == Layout::recorded_total(of_line);
  };
  for (other.speed = 0.4f; other.speed < 4 && !fits(frames(other));) other.speed *= 1.01f;
  EXPECT_LT(other.speed, 4);
  return other;
}

// Steps that a context may record, in memory that is used again and again: of lines that share recordings,
// and of batches that go without in between.
TEST_P(KokoroBatches, GraphsMakeTheSameSound) {
  ops::StepGraphs graphs;
  ops::Context& ctx = machine_.context;
  const std::unique_ptr<const StepMemory> memory = model_.step_memory(ctx);
  const Line line = random_line(config_, 8, 1), longer = random_line(config_, 14, 2);
  const std::vector<std::vector<Line>> batches = {
      {line}, {with_the_steps_of(line, model_, ctx)}, {longer}, {longer, line}, {random_line(config_, 1, 3)}};
  expect_same_sound(*memory, graphs, batches);
  EXPECT_EQ(graphs.count() > 0, !ops::testing_on_cpu());
}

// Several utterances, or too many frames for the memory, which only the durations show: these are computed
// from the output of the step over tokens.
TEST_P(KokoroBatches, UtterancesTooLargeForStepMemoryAreSpokenWithoutIt) {
  ops::StepGraphs graphs;
  const std::unique_ptr<const StepMemory> memory = model_.step_memory(machine_.context);
  const std::vector<Line> two(2, random_line(config_, 3, 9));
  std::vector<Line> slow(1, random_line(config_, 40, 9));
  slow[0].speed = 0.02f;
  EXPECT_FALSE(StepMemory::takes(std::vector<Utterance>(2)));
  EXPECT_FALSE(StepMemory::takes(speak(model_, machine_.context, slow)[0]));
  expect_same_sound(*memory, graphs, {two, slow});
}

// The affines of a style are computed once for all utterances that have it.
TEST_P(KokoroBatches, UtterancesThatShareAStyleStayApart) {
  std::vector<Line> lines;
  for (uint64_t i = 0; i < 6; ++i) lines.push_back(random_line(config_, 5 + static_cast<int>(i), i));
  lines[2].style = lines[4].style = lines[0].style;
  lines[5].style = lines[1].style;
  std::vector<std::span<const float>> styles;
  for (const Line& line : lines) styles.push_back(line.style);
  const SharedStyles shared(styles);
  EXPECT_EQ(shared.first, (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(shared.of, (std::vector<int32_t>{0, 1, 0, 2, 0, 1}));
  const std::vector<Spoken> spoken = speak(model_, machine_.context, lines);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(spoken[i].samples == speak(model_, machine_.context, {lines[i]})[0].samples) << i;
}

TEST_P(KokoroBatches, DurationsGiveTheNumberOfSamples) {
  Line line = random_line(config_, 20, 3);
  const Spoken normal = speak(model_, machine_.context, {line})[0];
  EXPECT_EQ(std::ssize(normal.samples), normal.frames() * model_.samples_per_frame());
  EXPECT_EQ(normal.durations.size(), line.ids.size());
  line.speed = 1000;  // every token lasts one frame, no less
  EXPECT_EQ(speak(model_, machine_.context, {line})[0].durations, std::vector<int32_t>(line.ids.size(), 1));
}

TEST_P(KokoroBatches, TheSeedChangesOnlyTheNoise) {
  Line line = random_line(config_, 12, 5);
  const Spoken one = speak(model_, machine_.context, {line})[0];
  EXPECT_TRUE(speak(model_, machine_.context, {line})[0].samples == one.samples);
  ++line.seed;
  const Spoken other = speak(model_, machine_.context, {line})[0];
  EXPECT_EQ(other.durations, one.durations);
  EXPECT_FALSE(other.samples == one.samples);
}

TEST_P(KokoroBatches, TheNumberOfThreadsDoesNotMatter) {
  const Line line = random_line(config_, 30, 6);
  ops::TestMachine single(1), several(3);
  EXPECT_TRUE(speak(model_, single.context, {line})[0].samples ==
              speak(model_, several.context, {line})[0].samples);
}

INSTANTIATE_TEST_SUITE_P(Types, KokoroBatches, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

// 256 and 128 channels: widths for which a GPU has kernels of their own (ops/snake_block.h).
TEST(Kokoro, AnUtteranceOfAWideGeneratorIsTheSameAloneAndInABatch) {
  ops::TestMachine machine(2);
  Config config = with_long_texts(small_config());
  config.upsample_initial_channel = 512;
  const Kokoro model = Kokoro::random(config, machine.context, DType::bf16, 7);
  std::vector<Line> lines;
  for (uint64_t i = 0; i < 5; ++i) lines.push_back(random_line(config, 1 + static_cast<int>(i * 13), i));
  poison(machine.workspace);
  const std::vector<Spoken> together = speak(model, machine.context, lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    poison(machine.workspace);
    const Spoken alone = speak(model, machine.context, {lines[i]})[0];
    EXPECT_EQ(alone.durations, together[i].durations);
    EXPECT_TRUE(alone.samples == together[i].samples) << i;
    for (const float sample : alone.samples) ASSERT_TRUE(std::isfinite(sample));
  }
}

TEST(Kokoro, RefusesInvalidUtterances) {
  ops::TestMachine machine(1);
  const Config config = small_config();
  const Kokoro model = Kokoro::random(config, machine.context, DType::f32, 7);
  const auto refused = [&](const Line& line, const std::string& why) {
    try {
      speak(model, machine.context, {line});
      ADD_FAILURE() << "spoken: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
    }
  };
  const Line good = random_line(config, 5, 1);
  Line bad = good;
  bad.ids = {0, 0};
  refused(bad, "phonemes, got 0");
  bad.ids.assign(static_cast<size_t>(config.max_positions) + 1, 1);
  refused(bad, "phonemes, got");
  bad = good;
  bad.ids[2] = static_cast<int32_t>(config.n_token);
  refused(bad, "phoneme ids below");
  bad.ids[2] = -1;
  refused(bad, "got -1");
  bad = good;
  bad.style.pop_back();
  refused(bad, "style of");
  for (const float speed : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    bad = good;
    bad.speed = speed;
    refused(bad, "speed: expected more than 0");
  }
}

}  // namespace
}  // namespace shoal::kokoro
