#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/suite/configuration.h"
#include "bench/suite/configuration_figures.h"
#include "bench/suite/speak.h"

namespace shoal::suite {
namespace {

using testing::HasSubstr;

// `sound_s` of sound in 25 frames a second, made in `took_s`.
Spoken spoken(Phase phase, double took_s, double sound_s, const std::string& text = "short") {
  Spoken one{.phase = phase, .text = text, .characters = 5};
  one.summary.sample_rate_hz = 1000;
  one.summary.samples = static_cast<int64_t>(1000 * sound_s);
  one.summary.frames = static_cast<int64_t>(25 * sound_s);
  one.summary.first_audio_s = took_s / 4;
  one.summary.total_s = took_s;
  return one;
}

TEST(SuiteFigures, OnlySamplesCountAsRequests) {
  ConfigurationFigures figures;
  figures.has_tokens = true;
  figures.add(spoken(Phase::warm_up, 9, 2));
  figures.add(spoken(Phase::sample, 1, 2));
  figures.add(spoken(Phase::sample, 3, 2, "long"));
  figures.add(spoken(Phase::batch, 0.5, 2));
  figures.batch_s = 0.5;
  const auto json = figures.json();
  EXPECT_EQ(json["warm_up_ms"], nlohmann::json({9000.0}));
  EXPECT_EQ(json["latency_ms"]["count"], 2);
  EXPECT_EQ(json["latency_ms"]["max"], 3000);
  EXPECT_EQ(json["real_time_factor"]["p50"], 0.5);
  EXPECT_EQ(json["semantic_tokens_per_s"]["max"], 50);
  EXPECT_EQ(json["texts"]["long"]["first_audio_ms"]["p50"], 750);
  EXPECT_EQ(json["batch"]["sound_s_per_s"], 4);
  EXPECT_EQ(json["sound_h_per_h"], 4);
  EXPECT_THAT(figures.lines(), HasSubstr("1 in a row: 0.50 s, 2.00 requests/s, 4.00 s of sound a second"));
}

TEST(SuiteFigures, WithoutABatchTheSamplesAreTheCapacity) {
  ConfigurationFigures figures;
  figures.add(spoken(Phase::sample, 1, 2));
  figures.add(spoken(Phase::sample, 3, 2));
  EXPECT_EQ(figures.json()["sound_h_per_h"], 1);
  EXPECT_EQ(figures.json()["semantic_tokens_per_s"]["count"], 0);
}

TEST(Configurations, AreFormsOfOneModel) {
  EngineConfig base;
  base.model = "m";
  base.threads = 3;
  const std::vector<std::string> keys = {"int8-kv", "f32"};
  const std::vector<Configuration> all = configurations_of(base, keys);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].config.kv_precision, KvPrecision::int8);
  EXPECT_EQ(all[0].config.kv_memory_mb * 2, all[1].config.kv_memory_mb);
  EXPECT_EQ(all[1].config.precision, Precision::float32);
  for (const Configuration& each : all) {
    EXPECT_EQ(each.config.model, "m");
    EXPECT_EQ(each.config.threads, 3);
    EXPECT_EQ(each.config.max_batch_size, 1);
    EXPECT_NO_THROW(each.config.validate());
  }
  EXPECT_THROW(configurations_of(base, std::vector<std::string>{"int3"}), Error);
}

TEST(SuiteTexts, AreShortMediumAndLong) {
  const std::vector<NamedText> texts = usual_texts();
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_LT(4 * texts[0].text.size(), texts[1].text.size());
  EXPECT_LT(texts[1].text.size(), texts[2].text.size());
}

}  // namespace
}  // namespace shoal::suite
