#include "base/thread_team.h"

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>

namespace shoal {
namespace {

TEST(ThreadTeam, EveryWorkerRunsEveryRegionOnce) {
  for (int size : {1, 2, 3, 7}) {
    ThreadTeam team(size);
    std::vector<int> runs(static_cast<size_t>(size), 0);
    for (int region = 0; region < 500; ++region)
      team.run([&](int worker) { ++runs[static_cast<size_t>(worker)]; });
    EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(size), 500));
  }
}

TEST(ThreadTeam, ParallelForCoversTheRangeExactlyOnce) {
  ThreadTeam team(3);
  for (int64_t count : {0, 1, 5, 64, 1001}) {
    for (int64_t grain : {1, 7, 64, 5000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      team.parallel_for(count, grain, [&](int64_t begin, int64_t end, int) {
        EXPECT_LE(end - begin, grain);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    }
  }
}

TEST(ThreadTeam, AnExceptionReachesTheCallerAndTheTeamLives) {
  ThreadTeam team(4);
  for (int thrower = 0; thrower < 4; ++thrower) {
    EXPECT_THROW(team.run([&](int worker) {
      if (worker == thrower) throw std::runtime_error("x");
    }),
                 std::runtime_error);
  }
  std::atomic<int> sum{0};
  team.run([&](int worker) { sum += worker; });
  EXPECT_EQ(sum, 6);
}

TEST(ThreadTeam, WakesAfterParking) {
  ThreadTeam team(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> calls{0};
    team.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 2);
  }
}

}  // namespace
}  // namespace shoal
