#include "server/observe/trace_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/eventually_testing.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/temporary_folder_testing.h"
#include "shoal/engine.h"

namespace shoal::server {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Trace : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view message) { remarks_.emplace_back(message); });
  }
  void TearDown() override { set_log_sink({}); }

  std::string path() const { return dir_.path("trace.json"); }
  std::string text() const { return read_file(path(), int64_t{64} << 20); }
  Json json() const { return Json::parse(text(), "trace.json"); }
  std::vector<Json> events(const std::string& phase) const {
    std::vector<Json> found;
    const Json all = json();
    for (const Json& event : all.as_array())
      if (event.at("ph").as_string() == phase) found.push_back(event);
    return found;
  }

  // Empty if it was read in the middle of a write.
  std::optional<size_t> events_so_far() const {
    try {
      return Json::parse(text() + "]", "cut off").as_array().size();
    } catch (const Error&) {
      return {};
    }
  }

  const TemporaryFolder dir_;
  std::vector<std::string> remarks_;
};

TEST_F(Trace, IsCompleteJsonOnceClosed) {
  {
    const TraceWriter writer(path());
    const int64_t now = now_us();
    {
      const TraceSpan span("decode step", {{"sequences", 3}, {"large", UINT64_MAX}});
    }
    trace_past("request", 7, now - 1'000'000'000, now + 2000, {{"seed", uint64_t{1} << 53}});
  }
  const std::vector<Json> spans = events("X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name").as_string(), "decode step");
  EXPECT_GE(spans[0].at("ts").as_integer(), 0);
  EXPECT_LT(spans[0].at("ts").as_integer() + spans[0].at("dur").as_integer(), 60'000'000);
  EXPECT_EQ(spans[0].at("args").at("sequences").as_integer(), 3);
  EXPECT_EQ(spans[0].at("args").at("large").as_string(), "18446744073709551615");
  const std::vector<Json> begins = events("b"), ends = events("e");
  ASSERT_EQ(begins.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(begins[0].at("ts").as_integer(), 0);  // began before the recording
  EXPECT_GE(ends[0].at("ts").as_integer(), 2000);
  EXPECT_EQ(begins[0].at("args").at("seed").as_integer(), int64_t{1} << 53);
  for (const char* same : {"name", "cat"})
    EXPECT_EQ(begins[0].at(same).as_string(), ends[0].at(same).as_string());
  EXPECT_EQ(begins[0].at("id").as_integer(), ends[0].at("id").as_integer());
  // The process, and the thread named after its first activity.
  const std::vector<Json> names = events("M");
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].at("args").at("name").as_string(), "shoal");
  EXPECT_EQ(names[1].at("args").at("name").as_string(), "decode step");
  EXPECT_EQ(names[1].at("tid").as_integer(), spans[0].at("tid").as_integer());
  EXPECT_FALSE(is_tracing());
}

TEST_F(Trace, AnEmptyTraceIsValidJson) {
  {
    const TraceWriter writer(path());
  }
  EXPECT_EQ(json().as_array().size(), 1u);
}

// A killed program leaves the file as it is during writing.
TEST_F(Trace, LacksOnlyTheEndWhileItIsWritten) {
  const TraceWriter writer(path());
  size_t seen = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3000; ++i) const TraceSpan span("step", {{"i", i}});
    const size_t before = seen;
    const int64_t patience = now_us() + 20'000'000;
    while (seen == before && now_us() < patience) {
      if (const std::optional<size_t> whole = events_so_far()) seen = *whole;
    }
    EXPECT_GT(seen, before);
  }
}

TEST_F(Trace, EndsBeforeItIsTooLarge) {
  constexpr int64_t kMost = 10'000;
  {
    const TraceWriter writer(path(), kMost);
    const int64_t patience = now_us() + 20'000'000;
    while (is_tracing() && now_us() < patience) const TraceSpan span("step", {{"a", 1}});
    EXPECT_FALSE(is_tracing());
  }
  EXPECT_LE(text().size(), static_cast<size_t>(kMost));
  EXPECT_GT(text().size(), static_cast<size_t>(kMost) - 200);
  EXPECT_GT(events("X").size(), 50u);
  ASSERT_FALSE(remarks_.empty());
  EXPECT_THAT(remarks_.back(), AllOf(HasSubstr("trace.json"), HasSubstr("the recording ends")));
}

TEST_F(Trace, AFullDiskEndsOnlyTheTrace) {
  {
    const TraceWriter writer("/dev/full");
    // More than a disk's buffer, and less than waits to be written before events are lost.
    for (int i = 0; i < 2000; ++i) const TraceSpan span("step");
    EXPECT_TRUE(eventually([] { return !is_tracing(); }));
  }
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("/dev/full cannot be written any more")));
}

TEST_F(Trace, AFileThatCannotBeCreatedIsAnError) {
  try {
    const TraceWriter writer(dir_.path("gone/trace.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.message(), HasSubstr("gone/trace.json"));
  }
  EXPECT_FALSE(is_tracing());
}

// Two requests to the built-in voice, read back from the file.
TEST_F(Trace, ContainsTheStepsOfTheEngine) {
  EngineConfig config;
  config.device = "cpu";
  config.threads = 2;
  config.cache_dir = "none";
  config.references_dir = dir_.path();
  config.warm_up = false;
  SpeechRequest request;
  request.text = "Hello.";
  request.max_new_tokens = 24;
  Engine engine(config);
  engine.start();
  request.seed = 5;
  const std::vector<float> untraced = engine.submit(request).read_all();
  const Statistics before = engine.statistics();
  const int64_t start = now_us();
  auto writer = std::make_unique<TraceWriter>(path());
  Speech first = engine.submit(request);
  request.seed = 6;
  Speech second = engine.submit(request);
  EXPECT_EQ(first.read_all(), untraced);  // tracing changes nothing
  second.read_all();
  const Statistics after = engine.statistics();  // a last step or pass may not be in it yet
  engine.stop();
  const int64_t took = now_us() - start;
  writer.reset();

  std::map<std::string, int64_t> frames, spans;
  std::map<int64_t, int64_t> end_of_thread;
  for (const Json& event : events("X")) {
    const std::string& name = event.at("name").as_string();
    const int64_t ts = event.at("ts").as_integer(), end = ts + event.at("dur").as_integer();
    EXPECT_LE(end, took) << name;
    int64_t& thread = end_of_thread[event.at("tid").as_integer()];
    EXPECT_GE(ts, thread) << name << ": a thread does one thing after the other";
    thread = end;
    frames[name] += event.at("args").at("frames").as_integer();
    ++spans[name];
  }
  const auto steps = static_cast<int64_t>(after.steps - before.steps);
  const auto passes = static_cast<int64_t>(after.codec_passes - before.codec_passes);
  EXPECT_THAT(spans["decode step"], AnyOf(steps - 1, steps, steps + 1));
  EXPECT_THAT(spans["codec pass"], AnyOf(passes - 1, passes, passes + 1));
  EXPECT_EQ(frames["codec pass"], first.summary().frames + second.summary().frames);
  EXPECT_GE(frames["decode step"], frames["codec pass"]);
  std::set<int64_t> seeds;
  for (const Json& request_event : events("b")) {
    seeds.insert(request_event.at("args").at("seed").as_integer());
    EXPECT_EQ(request_event.at("args").at("completed").as_integer(), 1);
  }
  EXPECT_THAT(seeds, ElementsAre(5, 6));
  EXPECT_EQ(events("e").size(), 2u);
}

}  // namespace
}  // namespace shoal::server
