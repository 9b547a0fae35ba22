#include "server/observe/server_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "server/observe/exposition_parser_testing.h"

namespace shoal::server {
namespace {

using testing::Exposition;

constexpr std::array<double, 3> kBounds = {0.1, 1, 10};

Histogram histogram(std::vector<uint64_t> counts, double sum) {
  Histogram histogram(kBounds);
  histogram.counts = std::move(counts);
  for (const uint64_t count : histogram.counts) histogram.count += count;
  histogram.sum = sum;
  return histogram;
}

Health busy_engine() {
  Health health;
  health.state = EngineState::ready;
  health.model = "folder";
  health.formats = {"float32", "int4", "int8", "bfloat16"};
  health.device = "cpu";
  health.uptime_s = 12.5;
  health.resident_bytes = 3'000'000'007;
  health.memory = {{"language model", 1'000'001}, {"KV pages", 64}};
  Statistics& of = health.statistics;
  of.completed = 7;
  of.refused = 2;
  of.running = 3;
  of.waiting = 5;
  of.frames = uint64_t{1} << 40;
  of.audio_s = 0.1 + 0.2;
  of.kv = {.pages = 10,
           .pages_used = 4,
           .pages_cached = 3,
           .pages_free = 3,
           .hit_columns = 30,
           .missed_columns = 10};
  for (Histogram* each : {&of.queue_wait_s, &of.first_audio_s, &of.chunk_gap_s, &of.real_time_factor,
                          &of.batch_size, &of.step_s, &of.codec_pass_s})
    *each = histogram({1, 2, 0, 4}, 123.25);
  return health;
}

constexpr const char* kModel = "a \"model\"\\ with\nlines";

std::vector<ModelHealth> one(Health health) { return {{kModel, std::move(health)}}; }

RequestRecord answered(int status, bool whole = true, double seconds = 0.02) {
  return {.status = status,
          .whole = whole,
          .bytes_received = 10,
          .bytes_sent = 100,
          .duration = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
              std::chrono::duration<double>(seconds))};
}

void use(ServerMetrics& metrics) {
  metrics.record("/v1/tts", answered(200));
  metrics.record("/v1/tts", answered(200, false));
  metrics.record("/v1/tts", answered(0, false));
  metrics.record("/v1/tts", answered(422));
  metrics.record("/v1/audio/speech", answered(429));
  metrics.record("/v1/audio/speech", answered(503));
  metrics.record("/v1/audio/speech", answered(500));
  metrics.record("/v1/audio/stream", answered(101, true, 3600));
  metrics.record("", answered(404));
  metrics.count_error("too_large");
  metrics.count_error("too_large");
  metrics.count_error("no such code\n");
  metrics.speaking(3);
  metrics.speaking(-1);
  metrics.live_first_audio(0.004);
}

TEST(ServerMetrics, RequestsAndTheirOutcomesAreCounted) {
  ServerMetrics metrics;
  use(metrics);
  const Exposition text(
      metrics.exposition(one(busy_engine()), {.connections = 4, .websockets = 1, .accepted = 9}));
  const auto requests = [&](const std::string& route, const std::string& outcome) {
    return text.value("shoal_http_requests_total", {{"route", route}, {"outcome", outcome}});
  };
  EXPECT_EQ(requests("/v1/tts", "ok"), 1);
  EXPECT_EQ(requests("/v1/tts", "gone"), 2);
  EXPECT_EQ(requests("/v1/tts", "client_error"), 1);
  EXPECT_EQ(requests("/v1/audio/speech", "refused"), 2);
  EXPECT_EQ(requests("/v1/audio/speech", "server_error"), 1);
  EXPECT_EQ(requests("other", "client_error"), 1);
  EXPECT_EQ(
      text.value("shoal_http_request_duration_seconds_count", {{"route", "/v1/tts"}, {"outcome", "ok"}}), 1);
  EXPECT_EQ(requests("/v1/audio/stream", "ok"), 1);
  EXPECT_EQ(text.value("shoal_http_request_duration_seconds_count",
                       {{"route", "/v1/audio/stream"}, {"outcome", "ok"}}),
            0);
  EXPECT_EQ(text.value("shoal_errors_total", {{"code", "too_large"}}), 2);
  EXPECT_EQ(text.value("shoal_errors_total", {{"code", "other"}}), 1);
  EXPECT_EQ(text.value("shoal_http_sent_bytes_total"), 900);
  EXPECT_EQ(text.value("shoal_http_received_bytes_total"), 90);
  EXPECT_EQ(text.value("shoal_http_speaking"), 2);
  EXPECT_EQ(text.value("shoal_http_first_audio_seconds_sum"), 0.004);
  EXPECT_EQ(text.value("shoal_http_connections"), 4);
  EXPECT_EQ(text.value("shoal_http_connections_accepted_total"), 9);
}

TEST(ServerMetrics, TheEnginesNumbersArriveExactly) {
  const Health health = busy_engine();
  const Exposition text(ServerMetrics().exposition(one(health), {}));
  EXPECT_EQ(text.value("shoal_ready"), 1);
  EXPECT_EQ(text.value("shoal_engine_requests_total", {{"outcome", "completed"}}), 7);
  EXPECT_EQ(text.value("shoal_engine_requests", {{"stage", "waiting"}}), 5);
  EXPECT_EQ(text.value("shoal_frames_total"), std::ldexp(1.0, 40));
  EXPECT_DOUBLE_EQ(text.value("shoal_audio_seconds_total"), 0.1 + 0.2);  // written with 16 digits
  EXPECT_EQ(text.value("shoal_kv_pages", {{"state", "cached"}}), 3);
  EXPECT_EQ(text.value("shoal_prefix_cache_hit_ratio"), 0.75);
  EXPECT_EQ(text.value("shoal_memory_bytes", {{"part", "language_model"}}), 1'000'001);
  EXPECT_EQ(text.value("shoal_memory_bytes", {{"part", "kv_pages"}}), 64);
  EXPECT_EQ(text.value("process_resident_memory_bytes"), 3'000'000'007);
  EXPECT_EQ(text.value("shoal_model_info", {{"model", kModel},
                                            {"precision", "float32"},
                                            {"weights", "int4"},
                                            {"kv_precision", "int8"},
                                            {"codec_weights", "bfloat16"},
                                            {"device", "cpu"}}),
            1);
  EXPECT_FALSE(text.has("shoal_device_memory_bytes"));
  // Not cumulative in the engine, cumulative here.
  for (const std::string name : {"shoal_queue_wait_seconds", "shoal_batch_size", "shoal_real_time_factor"}) {
    EXPECT_EQ(text.value(name + "_bucket", {{"le", "0.1"}}), 1);
    EXPECT_EQ(text.value(name + "_bucket", {{"le", "1"}}), 3);
    EXPECT_EQ(text.value(name + "_bucket", {{"le", "10"}}), 3);
    EXPECT_EQ(text.value(name + "_bucket", {{"le", "+Inf"}}), 7);
    EXPECT_EQ(text.value(name + "_sum"), 123.25);
  }
}

TEST(ServerMetrics, GpuMemoryAndEngineMemoryAreSeparate) {
  Health health = busy_engine();
  health.device_total_bytes = 1000;
  health.device_used_bytes = 400;
  const Exposition text(ServerMetrics().exposition(one(health), {}));
  EXPECT_EQ(text.value("shoal_device_memory_bytes", {{"state", "used"}}), 400);
  EXPECT_EQ(text.value("shoal_device_memory_bytes", {{"state", "free"}}), 600);
}

TEST(ServerMetrics, EachModelHasItsOwnSeries) {
  Health second = busy_engine();
  second.statistics.completed = 9;
  second.memory = {{"model", 5}};
  const std::vector<ModelHealth> models = {
      {"one", busy_engine()}, {"two", second}, {"three", {.state = EngineState::starting}}};
  const Exposition text(ServerMetrics().exposition(models, {}));  // throws when a family stands there twice
  const auto completed = [&](const std::string& model) {
    return text.value("shoal_engine_requests_total", {{"model", model}, {"outcome", "completed"}});
  };
  EXPECT_EQ(completed("one"), 7);
  EXPECT_EQ(completed("two"), 9);
  EXPECT_EQ(completed("three"), 0);
  EXPECT_EQ(text.value("shoal_ready", {{"model", "two"}}), 1);
  EXPECT_EQ(text.value("shoal_ready", {{"model", "three"}}), 0);
  EXPECT_EQ(text.value("shoal_memory_bytes", {{"model", "two"}, {"part", "model"}}), 5);
  EXPECT_EQ(text.value("shoal_first_audio_seconds_count", {{"model", "two"}}), 7);
}

TEST(ServerMetrics, BeforeTheModelIsLoadedItsNumbersAreAbsent) {
  const Exposition text(ServerMetrics().exposition(one({.state = EngineState::starting}), {}));
  EXPECT_EQ(text.value("shoal_ready"), 0);
  EXPECT_FALSE(text.has("shoal_frames_total"));
  EXPECT_FALSE(text.has("shoal_memory_bytes"));
}

TEST(ServerMetrics, ADrainingServerIsNotReadyButStillReports) {
  const Health health = busy_engine();
  EXPECT_EQ(Exposition(ServerMetrics().exposition(one(health), {})).value("shoal_ready"), 1);
  const Exposition text(ServerMetrics().exposition(one(health), {}, /*draining=*/true));
  EXPECT_EQ(text.value("shoal_ready"), 0);
  EXPECT_TRUE(text.has("shoal_frames_total"));
}

TEST(ServerMetrics, UnknownRoutesDoNotAddSeries) {
  ServerMetrics metrics;
  for (int i = 0; i < 5000; ++i) metrics.record("/" + std::to_string(i), answered(200));
  const std::string text = metrics.exposition(one(busy_engine()), {});
  EXPECT_GT(Exposition(text).value("shoal_http_requests_total", {{"route", "other"}, {"outcome", "ok"}}),
            4000);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 4000);
}

TEST(ServerMetrics, ManyThreadsCountWithoutLosingAnything) {
  ServerMetrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics, t] {
      for (int i = 0; i < 500; ++i) {
        metrics.record(t % 2 == 0 ? "/a" : "/b", answered(i % 2 == 0 ? 200 : 404));
        metrics.count_error("internal");
        if (i % 50 == 0)
          Exposition(metrics.exposition(one(busy_engine()), {}));  // throws when it is not valid
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Exposition text(metrics.exposition(one(busy_engine()), {}));
  for (const std::string route : {"/a", "/b"}) {
    for (const std::string outcome : {"ok", "client_error"})
      EXPECT_EQ(text.value("shoal_http_requests_total", {{"route", route}, {"outcome", outcome}}), 500);
  }
  EXPECT_EQ(text.value("shoal_errors_total", {{"code", "internal"}}), 2000);
}

TEST(ServerMetrics, PromtoolAcceptsTheMetrics) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "promtool is not installed";
  ServerMetrics metrics;
  use(metrics);
  Health health = busy_engine();
  health.device_total_bytes = 1000;
  const std::string path = ::testing::TempDir() + "shoal_metrics.txt";
  std::ofstream(path, std::ios::binary) << metrics.exposition(one(health), {});
  const std::string command = "promtool check metrics < '" + path + "' 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  std::array<char, 4096> buffer;
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) said.append(buffer.data(), count);
  EXPECT_EQ(pclose(pipe), 0) << said;
  EXPECT_EQ(said, "");
  std::remove(path.c_str());
}

// The parser that the tests above lean on refuses what the format forbids.
TEST(ExpositionParser, FindsFaults) {
  for (const std::string text : {
           "a 1\n",                                                                  // no TYPE
           "# TYPE a counter\na_total 1\n",                                          // another family
           "# TYPE a counter\na 1",                                                  // no line end
           "# TYPE a counter\na 1\na 2\n",                                           // twice
           "# TYPE a counter\na{x=\"1\",x=\"2\"} 1\n",                               // a label twice
           "# TYPE a counter\na{x=\"1} 1\n",                                         // no end of a value
           "# TYPE a counter\na{x=\"\\q\"} 1\n",                                     // unknown escape
           "# TYPE a counter\n# TYPE a counter\na 1\n",                              // TYPE twice
           "# TYPE a counter\na 1\n# HELP a late\n",                                 // HELP after samples
           "# TYPE a counter\na 1\n# TYPE b counter\nb 1\n# TYPE a counter\na 1\n",  // not together
           "# TYPE a counter\na -1\n",                                               // a counter below zero
           "# TYPE a gauge\na one\n",                                                // no number
           "# TYPE 1a gauge\n1a 1\n",                                                // no name
           "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
           "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
           "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
           "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n",
           "# TYPE a histogram\na 1\n",
       })
    EXPECT_THROW(Exposition{text}, std::runtime_error) << text;
  EXPECT_NO_THROW(Exposition{"# HELP a h\\\\ \\n\n# TYPE a counter\na{x=\"\\\"\\\\\\n\"} 1e3\n"});
}

}  // namespace
}  // namespace shoal::server
