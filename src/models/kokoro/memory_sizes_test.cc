// A plan is never too small, and most of it is really used.
#include "models/kokoro/memory_sizes.h"

#include <gtest/gtest.h>

#include "models/kokoro/batch_pass.h"
#include "models/kokoro/kokoro.h"
#include "models/kokoro/memory_testing.h"
#include "models/kokoro/small_config_testing.h"
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

// Utterances of about as many phonemes each, and one of a single phoneme; the last two share a style.
struct PlannedBatch {
  PlannedBatch(const Config& config, int utterances, int phonemes, float speed) {
    for (int u = 0; u < utterances; ++u) {
      std::vector<int32_t>& own = ids.emplace_back(u == 1 ? 3 : phonemes + 2 - u, 0);
      for (size_t i = 1; i + 1 < own.size(); ++i)
        own[i] = static_cast<int32_t>(i % static_cast<size_t>(config.n_token));
      const float value = 0.1f * static_cast<float>(u > 0 && u + 1 == utterances ? u - 1 : u);
      styles.emplace_back(static_cast<size_t>(2 * config.style_dim), value);
    }
    for (size_t u = 0; u < ids.size(); ++u)
      all.push_back({.ids = ids[u], .style = styles[u], .speed = speed});
  }
  // The sizes of what `model` makes of it.
  std::vector<UtteranceSize> sizes(const Kokoro& model, ops::Context& ctx) const {
    std::vector<UtteranceSize> sizes;
    for (const Spoken& spoken : model.speak(ctx, all))
      sizes.push_back({.tokens = std::ssize(spoken.durations), .frames = spoken.frames()});
    return sizes;
  }

  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> styles;
  std::vector<Utterance> all;
};

// The peak of a workspace that begins with so many bytes, in one block, and is not extended.
int64_t peak_of(const Kokoro& model, const PlannedBatch& batch, int threads, int64_t bytes) {
  ops::TestMachine machine(threads);
  machine.workspace.reserve(bytes);
  model.speak(machine.context, batch.all);
  EXPECT_EQ(machine.workspace.growths(), 1);
  return machine.workspace.peak_bytes();
}

class MemorySizes : public ::testing::TestWithParam<DType> {
 protected:
  void expect_planned(const Kokoro& model, const PlannedBatch& batch) {
    const std::vector<UtteranceSize> sizes = batch.sizes(model, machine_.context);
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(::testing::Message() << batch.all.size() << " utterances, " << threads << " threads");
      const int64_t planned = workspace_bytes(model.config(), sizes, GetParam(), machine_.device, threads);
      EXPECT_EQ(peak_of(model, batch, threads, planned), planned);
    }
  }

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

// To the byte, also where tokens take the most.
TEST_P(MemorySizes, WorkspacesAreThoseThatAreNeeded) {
  expect_planned(model_, PlannedBatch(config_, 1, 20, 1));
  expect_planned(model_, PlannedBatch(config_, 8, 9, 4));
  expect_planned(model_, PlannedBatch(config_, 3, 120, 20));
}

TEST_P(MemorySizes, OfSeveralGroupsTheLargestCounts) {
  const Kokoro small = Kokoro::random(small_config(), machine_.context, GetParam(), 1);
  const PlannedBatch batch(small_config(), 4, 20, 0.01f);
  int64_t frames = 0;
  for (const UtteranceSize& size : batch.sizes(small, machine_.context)) frames += size.frames;
  EXPECT_GT(frames, kMostFrames);
  expect_planned(small, batch);
}

// What comes before the frames takes most of the memory of many tokens.
TEST(KokoroWorkspace, IsTheLargestPartOfWhatIsSpoken) {
  SKIP_WITHOUT_CUDA();
  const Config config = Config::published();
  const auto megabytes = [&](size_t count, const UtteranceSize& size) {
    const std::vector<UtteranceSize> batch(count, size);
    return static_cast<double>(workspace_bytes(config, batch, DType::bf16, {DeviceKind::cuda, 0}, 1)) / 1e6;
  };
  const double one = megabytes(1, {.tokens = 512, .frames = 1280});
  EXPECT_NEAR(one, 440, 60);
  // Groups follow one another: a batch of them takes its samples more, and what tokens leave behind.
  EXPECT_NEAR(megabytes(6, {.tokens = 512, .frames = 1280}), one + 5 * (1280 * 2.4 + 512 * 4.6) / 1e3, 5);
  EXPECT_GT(megabytes(64, {.tokens = 512, .frames = 20}), one + 200);
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
  const PlannedBatch batch(config, 3, 107, 1);
  const int64_t planned =
      workspace_bytes(config, batch.sizes(model, machine.context), DType::bf16, machine.device, kThreads);
  EXPECT_EQ(peak_of(model, batch, kThreads, planned), planned);
}

INSTANTIATE_TEST_SUITE_P(Types, MemorySizes, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace shoal::kokoro
