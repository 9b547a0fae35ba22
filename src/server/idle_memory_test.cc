#include "server/idle_memory.h"

#include <atomic>
#include <gtest/gtest.h>

namespace shoal::server {
namespace {

TEST(IdleWatch, FiresOnceAfterEachBusyPeriod) {
  IdleWatch watch;
  EXPECT_FALSE(watch.is_time({.open = 0, .ended = 0}));  // nothing was ever done
  EXPECT_FALSE(watch.is_time({.open = 1, .ended = 0}));
  EXPECT_FALSE(watch.is_time({.open = 0, .ended = 1}));  // may go on at once
  EXPECT_TRUE(watch.is_time({.open = 0, .ended = 1}));
  EXPECT_FALSE(watch.is_time({.open = 0, .ended = 1}));
  EXPECT_FALSE(watch.is_time({.open = 0, .ended = 5}));
  EXPECT_FALSE(watch.is_time({.open = 1, .ended = 5}));
  EXPECT_TRUE(watch.is_time({.open = 0, .ended = 5}));
  EXPECT_FALSE(watch.is_time({.open = 0, .ended = 5}));
}

TEST(IdleWatch, DoesNotFireBetweenConsecutiveRequests) {
  IdleWatch watch;
  for (uint64_t ended = 1; ended < 100; ++ended)
    EXPECT_FALSE(watch.is_time({.open = ended % 2 == 0 ? 0 : 3, .ended = ended}));
}

TEST(IdleMemory, ReleasesMemoryFromItsOwnThread) {
  std::atomic<uint64_t> ended = 0;
  std::atomic<int> given_back = 0;
  const auto waits_for = [&](int times) {
    for (int i = 0; i < 20'000 && given_back < times; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return given_back.load();
  };
  {
    const IdleMemory memory([&] { return Activity{.open = 0, .ended = ended}; },
                            [&] {
                              ++given_back;
                              give_back_free_memory();
                            },
                            std::chrono::milliseconds(1));
    ended = 7;
    EXPECT_EQ(waits_for(1), 1);
    ended = 8;
    EXPECT_EQ(waits_for(2), 2);
  }
  ended = 9;
  EXPECT_EQ(given_back, 2);
}

}  // namespace
}  // namespace shoal::server
