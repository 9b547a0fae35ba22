#include "runtime/families/kokoro/kokoro_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/kokoro/memory_testing.h"
#include "ops/device_testing.h"
#include "runtime/families/kokoro/kokoro_pipeline.h"
#include "runtime/families/kokoro/kokoro_testing.h"

namespace shoal::runtime {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

constexpr int64_t kPlenty = int64_t{1} << 40;
const Device kGpu = {DeviceKind::cuda, 0};

KokoroMemoryPlan plan_of(const EngineConfig& config, Device device = kGpu, int64_t available = kPlenty) {
  return plan_kokoro_memory(config, kokoro::Config::published(), DType::bf16, device, 2, available);
}

TEST(KokoroMemory, PublishedSizesTakeLessThanOneAndAHalfGigabytes) {
  SKIP_WITHOUT_CUDA();
  EngineConfig config;
  config.max_batch_size = 16;
  const KokoroMemoryPlan plan = plan_of(config);
  EXPECT_NEAR(static_cast<double>(plan.weights.total()), 0.23e9, 0.02e9);
  EXPECT_LT(plan.total(), 1'500'000'000);
  EXPECT_EQ(plan.batch.frames, 8000);
  int64_t sum = 0;
  for (const MemoryPart& part : plan.parts()) sum += part.bytes;
  EXPECT_EQ(sum, plan.total());
}

TEST(KokoroMemory, ABatchIsAsLargeAsSettingsAllow) {
  SKIP_WITHOUT_CUDA();
  EngineConfig config;
  config.max_batch_size = 1;
  EXPECT_EQ(plan_of(config).batch.frames, 1536);
  EXPECT_EQ(plan_of(config).batch.tokens, 512);
  config.max_batch_size = 3;
  EXPECT_EQ(plan_of(config).batch.frames, 3 * 1536);
  config.max_batch_frames = 100;  // a longer one goes alone
  EXPECT_EQ(plan_of(config).batch.frames, 1536);
  EXPECT_EQ(plan_of(config).batch.tokens, 512);
  config.max_batch_frames = 0;
  EXPECT_EQ(plan_of(config, {}).batch.frames, 1536) << "a CPU takes one after another";
  const int64_t three = plan_of(config).workspace;
  config.max_batch_size = 1024;
  EXPECT_GT(plan_of(config).workspace, three);
}

TEST(KokoroMemory, StepsAreRecordedWhereTheyCanBe) {
  SKIP_WITHOUT_CUDA();
  EngineConfig config;
  const KokoroMemoryPlan recorded = plan_of(config);
  EXPECT_GT(recorded.steps.memory, 0);
  EXPECT_GT(recorded.steps.recordings, 0);
  EXPECT_EQ(plan_of(config, {}).steps.recordings, 0) << "a CPU records nothing";
  config.cuda_graphs = false;
  const KokoroMemoryPlan plain = plan_of(config);
  EXPECT_EQ(plain.steps.memory + plain.steps.recordings, 0);
  EXPECT_EQ(recorded.total() - plain.total(), recorded.steps.memory + recorded.steps.recordings);
}

TEST(KokoroMemory, WhatDoesNotFitIsSaidWithFigures) {
  SKIP_WITHOUT_CUDA();
  const KokoroMemoryPlan plan = plan_of({}, kGpu, 300'000'000);
  EXPECT_THAT(
      error_of([&] { plan.check(); }).message(),
      AllOf(HasSubstr("300.0 MB are free"), HasSubstr("generator"), HasSubstr("workspace of a batch")));
  EXPECT_NO_THROW(plan_of({}).check());
}

// The plan is what is taken, at the start, and the largest batch takes no more.
TEST(KokoroMemory, ThePipelineTakesWhatIsPlanned) {
  const testing::KokoroFolder folder;
  EngineConfig config = folder.config();
  config.max_batch_size = 2;
  config.max_batch_frames = 0;
  KokoroPipeline pipeline(config);
  const KokoroSizes sizes = kokoro_sizes(config.model, config.precision, ops::test_device());
  const KokoroMemoryPlan plan =
      plan_kokoro_memory(config, sizes.config, sizes.dtype, ops::test_device(), config.threads, kPlenty);
  const auto workspaces = [&] { return pipeline.memory().at(1).bytes; };
  const int64_t taken = workspaces(), weights = pipeline.memory().at(0).bytes;
  EXPECT_GE(taken, plan.workspace);
  EXPECT_LE(taken, plan.workspace + 2 * weights);  // of packing them on a GPU
  EXPECT_LE(plan.weights.total(), weights);
  // A GPU pads narrow matrices, and this model has no others.
  if (ops::testing_on_cpu())
    EXPECT_EQ(plan.weights.total(), weights);
  else
    EXPECT_LE(weights, kokoro::most_bytes_on_a_gpu(sizes.config, sizes.dtype));
  SpeechRequest request = testing::phonemes_request(std::string(200, 'a'));
  request.delivery = Delivery::whole;
  request.speed = 4;
  EXPECT_FALSE(pipeline.submit(request).read_all().empty());
  EXPECT_EQ(workspaces(), taken);
}

}  // namespace
}  // namespace shoal::runtime
