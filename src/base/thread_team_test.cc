#include "base/thread_team.h"

#include <chrono>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"

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

TEST(ThreadTeam, AnIdleTeamHasASizeAndRunsNothing) {
  ThreadTeam team = ThreadTeam::idle(64);
  EXPECT_EQ(team.size(), 64);
  team.run([](int) { FAIL(); });
  team.parallel_for(100, 7, [](int64_t, int64_t, int) { FAIL(); });
}

TEST(ThreadTeam, AnExceptionReachesTheCallerAndTheTeamStaysUsable) {
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

TEST(ThreadTeam, ANestedRegionIsRefused) {
  ThreadTeam team(3);
  for (int nester = 0; nester < 3; ++nester) {
    try {
      team.run([&](int worker) {
        if (worker == nester) team.parallel_for(100, 1, [](int64_t, int64_t, int) {});
      });
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
    }
  }
  std::atomic<int> sum{0};
  team.run([&](int worker) {
    if (worker == 0) std::thread([&] { EXPECT_THROW(team.run([](int) {}), Error); }).join();
    sum += worker;
  });
  EXPECT_EQ(sum, 3);
}

TEST(ThreadTeam, CountsTheCpusOfTheAffinityMask) {
  std::vector<cpu_set_t> before(1024);  // as many as any kernel is built for
  const size_t bytes = before.size() * sizeof(cpu_set_t);
  ASSERT_EQ(sched_getaffinity(0, bytes, before.data()), 0);
  EXPECT_EQ(ThreadTeam::available_cpus(), CPU_COUNT_S(bytes, before.data()));
  size_t first = 0;
  while (!CPU_ISSET_S(first, bytes, before.data())) ++first;
  std::vector<cpu_set_t> one(1024);
  CPU_SET_S(first, bytes, one.data());
  ASSERT_EQ(sched_setaffinity(0, bytes, one.data()), 0);
  EXPECT_EQ(ThreadTeam::available_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, bytes, before.data()), 0);
}

// Exits with 0 when a team too large for the address space fails as it should and a small one still works.
[[noreturn]] void start_more_threads_than_fit() {
  constexpr rlim_t kSpace = rlim_t{256} << 20;  // a few stacks, never those of 1000 threads
  const rlimit limit{kSpace, kSpace};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  try {
    const ThreadTeam team(1000);
    _exit(3);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource_exhausted) _exit(4);
    if (error.message().find("threads: expected to run 1000, the system allowed ") != 0) _exit(5);
  }
  std::atomic<int> calls{0};
  ThreadTeam(2).run([&](int) { ++calls; });
  _exit(calls == 2 ? 0 : 6);
}

TEST(ThreadTeamDeathTest, AThreadThatDoesNotStartIsATypedError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is larger than the limit";
#endif
  EXPECT_EXIT(start_more_threads_than_fit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shoal
