#include "base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Seen {
  std::string name;
  int64_t start_us, end_us;
  uint32_t thread;
  uint64_t track;
  std::vector<std::pair<std::string, uint64_t>> numbers;
};

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    set_trace_sink([this](const TraceEvent& event) {
      Seen seen{event.name, event.start_us, event.end_us, event.thread, event.track, {}};
      for (const TraceNumber& number : event.numbers) seen.numbers.emplace_back(number.name, number.value);
      seen_.push_back(std::move(seen));
    });
  }
  void TearDown() override { set_trace_sink({}); }

  std::vector<Seen> seen_;
};

TEST_F(Trace, ASpanLastsAsLongAsItsObject) {
  const int64_t before = now_us();
  {
    TraceSpan outer("outer", {{"rows", 3}});
    const TraceSpan inner("inner");
    outer.add({{"frames", int64_t{7}}, {"seed", UINT64_MAX}});
  }
  ASSERT_EQ(seen_.size(), 2u);
  const Seen &inner = seen_[0], &outer = seen_[1];
  EXPECT_EQ(inner.name, "inner");
  EXPECT_THAT(inner.numbers, IsEmpty());
  EXPECT_EQ(outer.name, "outer");
  EXPECT_THAT(outer.numbers, ElementsAre(Pair("rows", 3), Pair("frames", 7), Pair("seed", UINT64_MAX)));
  EXPECT_LE(before, outer.start_us);
  EXPECT_LE(outer.start_us, inner.start_us);
  EXPECT_LE(inner.start_us, inner.end_us);
  EXPECT_LE(inner.end_us, outer.end_us);
  EXPECT_LE(outer.end_us, now_us());
  EXPECT_NE(outer.thread, 0u);
  EXPECT_EQ(inner.thread, outer.thread);
}

TEST_F(Trace, FiguresBeyondTheLimitAreDropped) {
  {
    TraceSpan span("span", {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}});
    span.add({{"e", 5}, {"f", 6}, {"g", 7}});
    span.add({{"h", 8}});
  }
  ASSERT_EQ(seen_.size(), 1u);
  ASSERT_EQ(seen_[0].numbers.size(), 6u);
  EXPECT_EQ(seen_[0].numbers[5].first, "f");
}

TEST_F(Trace, ASpanRecordedAfterwardsHasATrackInsteadOfAThread) {
  trace_past("request", 9, 100, 250, {{"seed", 5}});
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].start_us, 100);
  EXPECT_EQ(seen_[0].end_us, 250);
  EXPECT_EQ(seen_[0].thread, 0u);
  EXPECT_EQ(seen_[0].track, 9u);
  EXPECT_THAT(seen_[0].numbers, ElementsAre(Pair("seed", 5)));
}

TEST_F(Trace, WithoutASinkNothingIsRecorded) {
  set_trace_sink({});
  EXPECT_FALSE(is_tracing());
  {
    const TraceSpan span("span");
  }
  trace_past("request", 1, 1, 2, {});
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(Trace, ASpanThatBeganBeforeTheSinkIsNotRecorded) {
  const auto sink = [this](const TraceEvent& event) { seen_.push_back({.name = event.name}); };
  set_trace_sink({});
  {
    const TraceSpan span("span");
    set_trace_sink(sink);
  }
  EXPECT_THAT(seen_, IsEmpty());
  {
    const TraceSpan span("span");
    set_trace_sink({});  // nor one that ends after it
  }
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(Trace, ASinkThatThrowsHarmsNobody) {
  set_trace_sink([](const TraceEvent&) { throw 1; });
  const TraceSpan span("span");
}

TEST_F(Trace, EachThreadHasItsOwnNumber) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) const TraceSpan span("span");
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint32_t> numbers;
  for (const Seen& seen : seen_) numbers.insert(seen.thread);
  EXPECT_EQ(seen_.size(), 400u);
  EXPECT_EQ(numbers.size(), 4u);
}

}  // namespace
}  // namespace shoal
