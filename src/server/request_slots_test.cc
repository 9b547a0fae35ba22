#include "server/request_slots.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/error.h"

namespace shoal::server {
namespace {

TEST(RequestSlots, RefuseAtTheLimitAndServeAgainWhenOneLeaves) {
  RequestSlots slots(0);
  auto first = std::make_optional(slots.take("a", 2));
  const auto second = slots.take("b", 2);
  EXPECT_THROW(slots.take("c", 2), Error);
  EXPECT_EQ(slots.taken(), 2);
  first.reset();
  const auto third = slots.take("c", 2);
  EXPECT_EQ(slots.taken(), 2);
}

TEST(RequestSlots, OneClientCannotTakeTheSlotsOfOthers) {
  RequestSlots slots(1);
  const auto first = slots.take("a", 3);
  try {
    slots.take("a", 3);
    FAIL() << "the second request of a client was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    EXPECT_NE(error.message().find("limit of 1"), std::string::npos) << error.message();
  }
  const auto other = slots.take("b", 3);
  EXPECT_EQ(slots.taken(), 2) << "a refused request must hold nothing";
}

TEST(RequestSlots, MovedSlotsAreReleasedOnce) {
  RequestSlots slots(1);
  {
    auto slot = slots.take("a", 1);
    const auto moved = std::move(slot);
  }
  EXPECT_EQ(slots.taken(), 0);
  EXPECT_EQ(slots.given_back(), 1u);
  const auto again = slots.take("a", 1);
}

TEST(RequestSlots, CountsUnderContention) {
  RequestSlots slots(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&slots, t] {
      for (int i = 0; i < 2000; ++i) {
        const auto slot = slots.take(std::to_string(t), 4);
        EXPECT_LE(slots.taken(), 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(slots.taken(), 0);
  EXPECT_EQ(slots.given_back(), 8000u);
}

}  // namespace
}  // namespace shoal::server
