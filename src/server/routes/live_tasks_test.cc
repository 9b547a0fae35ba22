#include "server/routes/live_tasks.h"

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"

namespace shoal::server {
namespace {

struct Session {
  Task<> fall() {
    fail(ErrorCode::internal, "nobody hears of it");
    co_return;
  }
  Task<> speak() {
    bool goes_on = true;
    while (goes_on) goes_on = co_await tasks.tick();
    const bool well = co_await goes_well(fall());
    told += well ? "" : "spoken ";
  }
  Task<> read() {
    tasks.spawn(speak());
    tasks.spawn(fall());
    co_await tasks.wait_for_an_end();
    told += "read ";
    fail(ErrorCode::cancelled, "broken");
  }

  std::string told;
  LiveTasks tasks;
};

TEST(LiveTasks, TheReadersEndCancelsTheOthersAndItsErrorComesAfterThem) {
  boost::asio::io_context context(1);
  Session session{{}, LiveTasks(context.get_executor())};
  const auto cancel = [&] { session.told += session.tasks.over() ? "over " : ""; };
  boost::asio::co_spawn(
      context.get_executor(), session.tasks.run(session.read(), cancel),
      [&](const std::exception_ptr& thrown) { session.told += thrown ? "thrown" : "lost"; });
  context.run();
  EXPECT_EQ(session.told, "read over spoken thrown");
}

}  // namespace
}  // namespace shoal::server
