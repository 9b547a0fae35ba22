#include "base/fair_mutex.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/eventually_testing.h"

namespace shoal {
namespace {

TEST(FairMutex, WhoeverLocksAgainWaitsBehindThoseWhoWait) {
  FairMutex mutex;
  std::vector<int> order;
  mutex.lock();
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    order.push_back(2);
  });
  ASSERT_TRUE(eventually([&] { return mutex.threads() == 2; }));
  order.push_back(1);
  mutex.unlock();
  mutex.lock();
  order.push_back(3);
  mutex.unlock();
  other.join();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(FairMutex, OneThreadAtATimeHasIt) {
  FairMutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

}  // namespace
}  // namespace shoal
