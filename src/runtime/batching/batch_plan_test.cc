#include "runtime/batching/batch_plan.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace shoal::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kNow = 10'000'000;
constexpr int64_t kLongAgo = kNow - 1'000'000;

BatchLimits limits_of(int64_t max_batch, int64_t max_frames = 1'000'000) {
  return {.max_batch = max_batch, .max_frames = max_frames};
}

WaitingChunk first_chunk(uint64_t request, int64_t arrival_us, int64_t frames = 100) {
  return {.request = request, .arrival_us = arrival_us, .due_us = arrival_us, .frames = frames};
}

std::vector<size_t> run(std::vector<WaitingChunk> waiting, const BatchLimits& limits) {
  const BatchPlan plan = plan_batch(waiting, limits, kNow);
  EXPECT_EQ(plan.wait_until_us, 0);
  return plan.run;
}

TEST(PlanBatch, AnEmptyQueueGivesAnEmptyPlan) {
  const BatchPlan plan = plan_batch({}, limits_of(4), kNow);
  EXPECT_THAT(plan.run, IsEmpty());
  EXPECT_EQ(plan.wait_until_us, 0);
}

TEST(PlanBatch, TheChunkDueFirstGoesFirst) {
  EXPECT_THAT(
      run({first_chunk(1, kLongAgo + 300'000), first_chunk(2, kLongAgo), first_chunk(3, kNow)}, limits_of(2)),
      ElementsAre(1, 0));
}

TEST(PlanBatch, AFirstChunkGoesBeforeListenersWithSoundLeft) {
  const WaitingChunk later = {
      .request = 1, .index = 1, .arrival_us = kLongAgo, .due_us = kNow + 2'000'000, .frames = 100};
  EXPECT_THAT(run({later, first_chunk(2, kNow)}, limits_of(1)), ElementsAre(1));
  // And a listener about to run dry goes before one that has waited less.
  WaitingChunk dry = later;
  dry.due_us = kNow - 1'000;
  EXPECT_THAT(run({first_chunk(2, kNow), dry}, limits_of(1)), ElementsAre(1));
}

TEST(PlanBatch, EquallyDueChunksOfSimilarLengthGoTogether) {
  EXPECT_THAT(run({first_chunk(1, kNow - 9, 100), first_chunk(2, kNow - 8, 900), first_chunk(3, kNow - 7, 20),
                   first_chunk(4, kNow - 6, 110), first_chunk(5, kNow - 5, 80)},
                  limits_of(3)),
              ElementsAre(0, 3, 4));
}

TEST(PlanBatch, AChunkLongerThanTheLimitRunsAlone) {
  EXPECT_THAT(run({first_chunk(1, kLongAgo, 5000), first_chunk(2, kLongAgo, 5)}, limits_of(8, 1000)),
              ElementsAre(0));
}

TEST(PlanBatch, AChunkThatDoesNotFitIsSkippedAndLaterOnesMayFit) {
  EXPECT_THAT(
      run({first_chunk(1, kLongAgo, 600), first_chunk(2, kLongAgo, 600), first_chunk(3, kLongAgo, 90)},
          limits_of(8, 1000)),
      ElementsAre(0, 2));
}

TEST(PlanBatch, ChunksNotYetDueJoinOnlyAtNoCost) {
  const WaitingChunk later = {
      .request = 1, .index = 1, .arrival_us = kLongAgo, .due_us = kNow + 5'000'000, .frames = 300};
  BatchLimits limits = limits_of(8);
  EXPECT_THAT(run({first_chunk(2, kLongAgo), later}, limits), ElementsAre(0));
  limits.spare_frames = 1000;
  EXPECT_THAT(run({first_chunk(2, kLongAgo), later}, limits), ElementsAre(0, 1));
  limits.spare_frames = 0;
  EXPECT_THAT(run({later}, limits), ElementsAre(0)) << "a device that is free works ahead";
}

TEST(PlanBatch, AClientWithManyChunksDoesNotBlockOthers) {
  std::vector<WaitingChunk> waiting;
  for (uint64_t i = 0; i < 6; ++i) {
    waiting.push_back(first_chunk(i, kLongAgo));
    waiting.back().turn_us = static_cast<int64_t>(i) * 40'000;
  }
  waiting.push_back(first_chunk(9, kLongAgo + 90'000));
  std::vector<uint64_t> order;
  while (!waiting.empty()) {
    const size_t next = run(waiting, limits_of(1)).at(0);
    order.push_back(waiting[next].request);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(next));
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 9, 3, 4, 5));
}

TEST(AdaptiveWait, GetsShorterAsTheBatchFillsAndIsShortestWithoutArrivals) {
  BatchLimits limits = limits_of(8);
  limits.min_wait_us = 1'000;
  limits.max_wait_us = 50'000;
  EXPECT_EQ(adaptive_wait_us(1, limits), 1'000);
  limits.arrivals_per_s = 19;
  EXPECT_EQ(adaptive_wait_us(1, limits), 1'000) << "less than one expected";
  limits.arrivals_per_s = 21;
  EXPECT_EQ(adaptive_wait_us(1, limits), 50'000);
  limits.arrivals_per_s = 1000;
  EXPECT_EQ(adaptive_wait_us(1, limits), 7'000);
  EXPECT_EQ(adaptive_wait_us(5, limits), 3'000);
  EXPECT_EQ(adaptive_wait_us(8, limits), 0);
  limits.arrivals_per_s = 1e9;
  EXPECT_EQ(adaptive_wait_us(1, limits), 1'000);
}

TEST(PlanBatch, WaitsForMoreChunksUpToALimit) {
  BatchLimits limits = limits_of(8);
  limits.min_wait_us = 20'000;
  limits.max_wait_us = 50'000;
  const std::vector<WaitingChunk> waiting = {first_chunk(1, kNow - 5'000), first_chunk(2, kNow)};
  const BatchPlan plan = plan_batch(waiting, limits, kNow);
  EXPECT_THAT(plan.run, IsEmpty());
  EXPECT_EQ(plan.wait_until_us, kNow + 15'000);
  EXPECT_THAT(plan_batch(waiting, limits, kNow + 15'000).run, ElementsAre(0, 1));
  limits.max_batch = 2;
  EXPECT_THAT(plan_batch(waiting, limits, kNow).run, ElementsAre(0, 1)) << "a full batch waits for nobody";
}

TEST(ArrivalRate, FollowsTheArrivalsAndForgets) {
  ArrivalRate rate;
  EXPECT_EQ(rate.per_s(kNow), 0);
  int64_t now = kNow;
  for (int i = 0; i < 1000; ++i) rate.add(now += 5'000);
  EXPECT_NEAR(rate.per_s(now), 200, 5);
  EXPECT_LT(rate.per_s(now + 10'000'000), 0.1);
  EXPECT_GT(rate.per_s(now - 1), 0) << "a clock that is read in another order";
}

// A machine that needs time for a batch, and listeners that play its sound.
struct Replay {
  struct Chunk {
    WaitingChunk chunk;
    int64_t started_us = -1;
  };
  std::vector<Chunk> chunks;
  std::vector<size_t> batch_sizes;
  BatchLimits limits;

  explicit Replay(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    limits = {.max_batch = between(1, 9),
              .max_frames = between(50, 3000),
              .spare_frames = between(0, 1) * between(1, 2000),
              .min_wait_us = between(0, 20'000)};
    limits.max_wait_us = limits.min_wait_us + between(0, 60'000);
    int64_t at = kNow;
    const int64_t gap = between(1, 60'000);
    for (uint64_t i = 0; i < 300; ++i) {
      WaitingChunk chunk = first_chunk(i / 3, at += between(0, gap), between(1, 1500));
      chunk.index = static_cast<int64_t>(i % 3);
      chunk.turn_us = between(0, 50'000);
      chunk.due_us += chunk.index * between(0, 3'000'000);
      chunks.push_back({chunk});
    }
    replay(between(100, 20'000), between(1, 100));
  }

  void replay(int64_t fixed_us, int64_t frame_us) {
    ArrivalRate rate;
    int64_t now = kNow;
    size_t arrived = 0, started = 0;
    for (int step = 0; step < 10'000 && started < chunks.size(); ++step) {
      for (; arrived < chunks.size() && chunks[arrived].chunk.arrival_us <= now; ++arrived)
        rate.add(chunks[arrived].chunk.arrival_us);
      std::vector<WaitingChunk> waiting;
      std::vector<size_t> which;
      for (size_t i = 0; i < arrived; ++i) {
        if (chunks[i].started_us >= 0) continue;
        waiting.push_back(chunks[i].chunk);
        which.push_back(i);
      }
      limits.arrivals_per_s = rate.per_s(now);
      const BatchPlan plan = plan_batch(waiting, limits, now);
      int64_t frames = 0;
      for (const size_t i : plan.run) {
        EXPECT_LT(chunks[which[i]].started_us, 0) << "a chunk ran twice";
        chunks[which[i]].started_us = now;
        frames += waiting[i].frames;
      }
      started += plan.run.size();
      if (!plan.run.empty()) {
        EXPECT_LE(std::ssize(plan.run), limits.max_batch);
        EXPECT_TRUE(frames <= limits.max_frames || plan.run.size() == 1);
        batch_sizes.push_back(plan.run.size());
        now += fixed_us + frames * frame_us;
        idle_since_ = now;
        continue;
      }
      int64_t next = plan.wait_until_us;
      EXPECT_TRUE(waiting.empty() || next > now) << "waits without an end";
      if (!waiting.empty()) check_wait(waiting, next);
      if (arrived < chunks.size())
        next =
            next == 0 ? chunks[arrived].chunk.arrival_us : std::min(next, chunks[arrived].chunk.arrival_us);
      now = next;
    }
    EXPECT_EQ(started, chunks.size()) << "a chunk never ran";
  }

  // No chunk waits for others longer than max_wait_us.
  void check_wait(const std::vector<WaitingChunk>& waiting, int64_t until) const {
    const auto oldest = std::ranges::min(waiting, {}, &WaitingChunk::arrival_us).arrival_us;
    EXPECT_LE(until, std::max(oldest, idle_since_) + limits.max_wait_us);
  }

 private:
  int64_t idle_since_ = 0;
};

TEST(PlanBatch, EverythingRunsOnceWithinTheLimits) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Replay replay(seed);
    EXPECT_FALSE(replay.batch_sizes.empty());
  }
}

// A chunk of odd length among a stream of others that resemble each other runs when it is due first.
TEST(PlanBatch, NobodyStarves) {
  const BatchLimits limits = limits_of(4, 2000);
  std::vector<WaitingChunk> waiting = {first_chunk(0, kNow, 1900)};
  uint64_t next = 1;
  int64_t now = kNow;
  for (int batch = 0; batch < 100; ++batch) {
    for (int i = 0; i < 6; ++i) {  // more come than run, of several clients
      waiting.push_back(first_chunk(next, now + i, 100));
      waiting.back().turn_us = static_cast<int64_t>(next++ % 3) * 10'000;
    }
    const BatchPlan plan = plan_batch(waiting, limits, now);
    ASSERT_FALSE(plan.run.empty());
    std::vector<WaitingChunk> left;
    for (size_t i = 0; i < waiting.size(); ++i)
      if (!std::ranges::count(plan.run, i)) left.push_back(waiting[i]);
    waiting = std::move(left);
    now += 30'000;
    if (std::ranges::none_of(waiting, [](const WaitingChunk& c) { return c.request == 0; })) return;
  }
  ADD_FAILURE() << "the long chunk never ran";
}

}  // namespace
}  // namespace shoal::runtime
