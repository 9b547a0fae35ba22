// A plan is never too small, and most of it is really used.
#include "models/kokoro/memory_sizes.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "models/kokoro/kokoro.h"
#include "models/kokoro/memory_testing.h"
#include "models/kokoro/step_memory.h"
#include "ops/device_testing.h"

namespace shoal::kokoro {
namespace {

constexpr int kThreads = 2;

// An eighth of the published widths, at the published rates; a quarter of the generator's, which packing does
// not pad.
Config narrow_config() {
  Config config = Config::published();
  config.hidden_dim /= 8;
  config.bert_dim /= 8;
  config.bert_heads /= 4;
  config.bert_intermediate /= 8;
  config.bert_layers = 1;
  config.embedding_dim /= 8;
  config.decoder_width /= 8;
  config.decoder_asr_width /= 8;
  config.upsample_initial_channel /= 4;
  return config;
}

// What ops take for themselves.
int64_t scratch() { return ops::testing_on_cpu() ? kThreads << 20 : 32 << 20; }

// Whether a workspace that begins with so many bytes is never extended.
bool fits(const Kokoro& model, const std::vector<Utterance>& batch, int64_t bytes) {
  ops::TestMachine machine(kThreads);
  {
    const Workspace::Scope scope(machine.workspace);
    machine.workspace.alloc(DType::u8, {bytes});
  }
  model.speak(machine.context, batch);
  return machine.workspace.growths() == 1;
}

// Utterances of as many phonemes each.
std::vector<Utterance> batch_of(int utterances, std::span<const int32_t> ids, std::span<const float> style,
                                float speed) {
  return std::vector<Utterance>(static_cast<size_t>(utterances),
                                {.ids = ids, .style = style, .speed = speed});
}

class MemorySizes : public ::testing::TestWithParam<DType> {
 protected:
  bool fits(const std::vector<Utterance>& batch, int64_t bytes) { return kokoro::fits(model_, batch, bytes); }

  const Config config_ = narrow_config();
  ops::TestMachine machine_{kThreads};
  const Kokoro model_ = Kokoro::random(config_, machine_.context, GetParam(), 1);
};

TEST_P(MemorySizes, WeightsAreThoseThatAreLoaded) {
  const int64_t planned = weight_bytes(config_, GetParam(), machine_.device).total();
  if (ops::testing_on_cpu()) {
    EXPECT_EQ(planned, model_.weight_bytes());
    return;
  }
  // A GPU pads narrow matrices (the published ones, which hardly need it: below).
  EXPECT_LE(planned, model_.weight_bytes());
  EXPECT_LE(model_.weight_bytes(), most_bytes_on_a_gpu(config_, GetParam()));
}

TEST_P(MemorySizes, StepMemoryIsWhatIsTaken) {
  EXPECT_EQ(step_bytes(config_).memory, model_.step_memory(machine_.context)->bytes());
}

TEST_P(MemorySizes, WorkspacesAreThoseThatAreNeeded) {
  const std::vector<float> style(static_cast<size_t>(2 * config_.style_dim), 0.1f);
  struct Shape {
    int utterances, phonemes;
    float speed;
  };
  for (const auto& [count, phonemes, speed] : {Shape{1, 20, 1}, {8, 4, 4}, {1, 120, 20}}) {
    SCOPED_TRACE(::testing::Message() << count << " x " << phonemes);
    std::vector<int32_t> ids(static_cast<size_t>(phonemes) + 2, 0);
    for (int i = 1; i <= phonemes; ++i) ids[static_cast<size_t>(i)] = i % static_cast<int>(config_.n_token);
    const std::vector<Utterance> batch = batch_of(count, ids, style, speed);
    int64_t frames = 0;
    for (const Spoken& one : model_.speak(machine_.context, batch)) frames += one.frames();
    ASSERT_LE(frames, kMostFrames);
    const BatchSize size{
        .utterances = count, .tokens = count * std::ssize(ids), .frames = frames, .frames_together = frames};
    const int64_t planned = workspace_bytes(config_, size, GetParam(), machine_.device);
    EXPECT_TRUE(fits(batch, planned + scratch()));
    EXPECT_FALSE(fits(batch, planned * 8 / 10));
  }
}

// What comes before the frames takes most of the memory of many tokens.
TEST(KokoroWorkspace, IsTheLargestPartOfWhatIsSpoken) {
  const Config config = Config::published();
  const auto megabytes = [&](const BatchSize& size) {
    return static_cast<double>(workspace_bytes(config, size, DType::bf16, {DeviceKind::cuda, 0})) / 1e6;
  };
  const double one = megabytes({.utterances = 1, .tokens = 512, .frames = 1280, .frames_together = 1280});
  EXPECT_NEAR(one, 440, 60);
  // Groups follow one another: a batch of them takes its samples more, and what tokens leave behind.
  EXPECT_NEAR(megabytes({.utterances = 6, .tokens = 3072, .frames = 7680, .frames_together = 1280}),
              one + 5 * (1280 * 2.4 + 512 * 4.6) / 1e3, 5);
  EXPECT_GT(megabytes({.utterances = 64, .tokens = 64 * 512, .frames = 1280, .frames_together = 1280}),
            one + 200);
}

// With the kernels that a GPU has for the published widths alone.
TEST(KokoroMemoryOfADevice, PublishedSizesAreThoseThatAreNeeded) {
  if (ops::testing_on_cpu()) GTEST_SKIP() << "needs a GPU";
  const ops::TestMachine machine(kThreads);
  const Config config = Config::published();
  const Kokoro model = Kokoro::random(config, machine.context, DType::bf16, 1);
  const int64_t weights = weight_bytes(config, DType::bf16, machine.device).total();
  EXPECT_LE(weights, model.weight_bytes());
  EXPECT_GE(weights, model.weight_bytes() * 97 / 100);
  const std::vector<float> style(static_cast<size_t>(2 * config.style_dim), 0.1f);
  std::vector<int32_t> ids(109, 5);
  ids.front() = ids.back() = 0;
  const std::vector<Utterance> batch = batch_of(3, ids, style, 1);
  int64_t frames = 0;
  for (const Spoken& one : model.speak(machine.context, batch)) frames += one.frames();
  ASSERT_LE(frames, kMostFrames);
  const BatchSize size{
      .utterances = 3, .tokens = 3 * std::ssize(ids), .frames = frames, .frames_together = frames};
  const int64_t planned = workspace_bytes(config, size, DType::bf16, machine.device);
  EXPECT_TRUE(fits(model, batch, planned + scratch()));
  EXPECT_FALSE(fits(model, batch, planned * 8 / 10));
}

INSTANTIATE_TEST_SUITE_P(Types, MemorySizes, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace shoal::kokoro
