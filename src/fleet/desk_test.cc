#include "fleet/desk.h"

#include <gmock/gmock.h>
#include <thread>

#include "base/error.h"

namespace shoal::fleet {
namespace {

ErrorCode code_of_asking(Desk& desk, Order order) {
  try {
    desk.ask(std::move(order));
    return ErrorCode::internal;
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(Desk, WhoeverAsksWaitsForWhatComesOfIt) {
  Desk desk;
  std::atomic<bool> ends{false};
  std::vector<std::string> obeyed;
  std::thread fleet([&] {
    while (!ends) {
      desk.obey([&](const Order& order) {
        if (order.worker.empty()) fail(ErrorCode::not_found, "worker");
        obeyed.push_back(order.worker);
      });
    }
  });
  desk.ask({.worker = "w1"});
  EXPECT_EQ(code_of_asking(desk, {}), ErrorCode::not_found);
  desk.ask({.worker = "w2"});
  ends = true;
  fleet.join();
  EXPECT_THAT(obeyed, ::testing::ElementsAre("w1", "w2"));
}

TEST(Desk, WhoeverAsksAFleetThatEndsIsTold) {
  Desk desk;
  std::thread asks([&] { EXPECT_EQ(code_of_asking(desk, {.worker = "w1"}), ErrorCode::unavailable); });
  desk.close();
  asks.join();
  EXPECT_EQ(code_of_asking(desk, {.worker = "w1"}), ErrorCode::unavailable);
}

TEST(Desk, CountsThoseThatGetRequests) {
  Desk desk;
  desk.publish({.workers = {{.state = WorkerState::ready},
                            {.state = WorkerState::ready, .gets_requests = false},
                            {.state = WorkerState::starting}}});
  EXPECT_EQ(desk.status().ready(), 1);
}

}  // namespace
}  // namespace shoal::fleet
