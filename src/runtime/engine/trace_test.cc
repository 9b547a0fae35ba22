// The trace of an engine's work; tracing changes nothing.
#include "base/trace.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "base/clock.h"
#include "runtime/engine/engine_testing.h"

namespace shoal::runtime {
namespace {

using testing::Answer;
using testing::answer_of;

struct Seen {
  std::string name;
  int64_t start_us, end_us;
  uint32_t thread;
  std::map<std::string, uint64_t> numbers;
};

class Trace : public ::testing::Test {
 protected:
  void TearDown() override { set_trace_sink({}); }

  void watch() {
    set_trace_sink([this](const TraceEvent& event) {
      Seen seen{event.name, event.start_us, event.end_us, event.thread, {}};
      for (const TraceNumber& number : event.numbers) seen.numbers[number.name] = number.value;
      seen_.push_back(std::move(seen));
    });
  }
  uint64_t count(const std::string& name) const {
    return static_cast<uint64_t>(
        std::count_if(seen_.begin(), seen_.end(), [&](const Seen& seen) { return seen.name == name; }));
  }
  uint64_t sum(const std::string& name, const std::string& number) const {
    uint64_t total = 0;
    for (const Seen& seen : seen_)
      if (seen.name == name) total += seen.numbers.at(number);
    return total;
  }

  std::vector<Seen> seen_;  // once the engine has stopped
};

SpeechRequest cloning_request() {
  SpeechRequest request = testing::short_request("A fish.", 20);
  request.references.push_back({.audio = testing::noise_wav(0.7, 4), .text = "some words"});
  return request;
}

TEST_F(Trace, RecordsEveryStepPassAndRequestWithItsFigures) {
  std::vector<Answer> answers[2];  // without and with a trace
  Statistics statistics;
  const int64_t start = now_us();
  for (const bool traced : {false, true}) {
    if (traced) watch();
    Engine engine(testing::tiny_config());
    engine.start();
    Speech plain = engine.submit(testing::short_request());
    Speech cloning = engine.submit(cloning_request());
    for (Speech* speech : {&plain, &cloning}) answers[traced].push_back(answer_of(*speech));
    statistics = engine.statistics();  // the last step and pass may not be in it
    engine.stop();
  }
  const int64_t end = now_us();
  EXPECT_EQ(answers[0], answers[1]);

  EXPECT_LE(count("decode step") - statistics.steps, 1u);
  EXPECT_LE(count("codec pass") - statistics.codec_passes, 1u);
  EXPECT_EQ(count("clip encoding"), 1u);
  EXPECT_EQ(count("request"), 2u);
  EXPECT_EQ(seen_.size(), count("decode step") + count("codec pass") + 3);
  EXPECT_EQ(sum("clip encoding", "clips"), 1u);
  EXPECT_EQ(sum("request", "completed"), 2u);
  EXPECT_EQ(sum("request", "seed"), 6u);
  EXPECT_EQ(sum("codec pass", "frames"), sum("request", "frames"));
  EXPECT_GE(sum("decode step", "frames"), sum("request", "frames"));
  EXPECT_GT(sum("decode step", "prefill_columns"), 0u);
  for (const Seen& seen : seen_) {
    EXPECT_LE(start, seen.start_us) << seen.name;
    EXPECT_LE(seen.start_us, seen.end_us) << seen.name;
    EXPECT_LE(seen.end_us, end) << seen.name;
    EXPECT_EQ(seen.thread == 0, seen.name == "request") << seen.name;
  }
}

TEST_F(Trace, RecordsCancelledRequests) {
  watch();
  Engine engine(testing::tiny_config());
  engine.start();
  Speech speech = engine.submit(testing::endless_request());
  speech.next();
  speech.cancel();
  EXPECT_EQ(testing::code_of([&] { speech.read_all(); }), ErrorCode::cancelled);
  engine.stop();
  EXPECT_EQ(count("request"), 1u);
  EXPECT_EQ(sum("request", "completed"), 0u);
}

}  // namespace
}  // namespace shoal::runtime
