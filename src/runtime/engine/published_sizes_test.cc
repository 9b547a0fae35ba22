// On a GPU: at the published sizes of language models, with random weights, the codes of a request are the
// same alone, among 8 and among 64. Those sizes choose other kernels than the small models of
// determinism_test.cc.
#include <gtest/gtest.h>

#include "runtime/engine/device_memory.h"
#include "runtime/engine/engine_testing.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;

constexpr int64_t kDeviceMemory = int64_t{24} << 30;
constexpr int kTogether = 64, kAlone = 16;
constexpr int kMostFrames = 30;
constexpr int kPatience = 10000;    // ms, so that as many as an engine takes begin together
constexpr int kStepsTogether = 10;  // of more than half of them, at least

struct Case {
  const char* model;
  WeightFormat weights;
  KvPrecision kv;
};

EngineConfig config_of(const Case& c, int batch) {
  EngineConfig config = testing::tiny_config();
  config.model = std::string("random:") + c.model;
  config.precision = Precision::bfloat16;
  config.weights = c.weights;
  config.kv_precision = c.kv;
  config.max_batch_size = batch;
  if (batch > 1) config.batch_timeout_ms = kPatience;
  return config;
}

// Some with a reference of 100 to 400 frames, so that prompts are small and large.
std::vector<SpeechRequest> requests_for(const Engine& engine) {
  std::mt19937_64 random(17);
  const CodecShape codec = engine.codec_shape();
  std::vector<ReferenceCodes> voices;
  for (const int frames : {100, 400}) {
    ReferenceCodes voice{.codes = {}, .text = "the words of a clip"};
    for (int i = 0; i < frames; ++i)
      for (int book = 0; book < codec.codebooks; ++book)
        voice.codes.push_back(testing::between(random, 0, codec.residual_entries - 1));
    voices.push_back(voice);
  }
  std::vector<SpeechRequest> requests;
  for (int i = 0; i < kTogether; ++i) {
    requests.push_back(testing::random_request(random, voices, kMostFrames));
    requests.back().max_new_tokens = testing::between(random, kMostFrames / 2, kMostFrames);
  }
  return requests;
}

// How many steps advanced more than this many sequences, a bound of the statistics.
uint64_t steps_above(const Histogram& sequences, double bound) {
  uint64_t steps = 0;
  for (size_t i = 0; i < sequences.bounds.size(); ++i)
    if (sequences.bounds[i] >= bound) steps += sequences.counts[i + 1];
  return steps;
}

// Of the first `count` requests, submitted at once to an engine that takes `batch` of them together.
std::vector<Answer> answers(const Case& c, int batch, int count) {
  Engine engine(config_of(c, batch));
  engine.start();
  const std::vector<SpeechRequest> requests = requests_for(engine);
  std::vector<Speech> speeches;
  for (int i = 0; i < count; ++i) speeches.push_back(engine.submit(requests[static_cast<size_t>(i)]));
  std::vector<Answer> all;
  for (Speech& speech : speeches) all.push_back(answer_of(speech));
  if (batch > 1) {
    EXPECT_GE(steps_above(engine.statistics().batch_size, batch / 2), kStepsTogether);
  }
  return all;
}

class PublishedSizes : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (ops::testing_on_cpu()) GTEST_SKIP() << "these sizes are for a GPU";
    if (memory_available(ops::test_device()) < kDeviceMemory)
      GTEST_SKIP() << "less than 24 GiB of GPU memory are free";
  }
};

TEST_P(PublishedSizes, ARequestIsTheSameAloneAmong8AndAmong64) {
  const std::vector<Answer> alone = answers(GetParam(), 1, kAlone);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_GE(std::ssize(alone[i].codes), 10 * (kMostFrames / 2 - 1)) << i;
    if (i > 0) {
      EXPECT_NE(alone[i].codes, alone[i - 1].codes) << i;
    }
  }
  for (const auto& [batch, count] : {std::pair{8, kAlone}, {kTogether, kTogether}}) {
    const std::vector<Answer> together = answers(GetParam(), batch, count);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].codes, alone[i].codes) << "request " << i << " among " << batch;
      EXPECT_EQ(together[i].sound, alone[i].sound) << "request " << i << " among " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedSizes,
                         ::testing::Values(Case{"s2-pro", WeightFormat::automatic, KvPrecision::automatic},
                                           Case{"s2-pro", WeightFormat::int8, KvPrecision::int8},
                                           Case{"s1-mini", WeightFormat::automatic, KvPrecision::automatic},
                                           Case{"s1-mini", WeightFormat::int8, KvPrecision::int8}),
                         [](const auto& suite) {
                           std::string name(suite.param.model);
                           std::erase(name, '-');
                           return concat(name, "_", name_of(suite.param.weights), "_kv_",
                                         name_of(suite.param.kv));
                         });

}  // namespace
}  // namespace shoal::runtime
