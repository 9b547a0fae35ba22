#include "fleet/supervisor.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <list>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "fleet/probe.h"

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kPatience_us = 20'000'000;

// A port at which nobody can listen while this lives: bound, by a socket that does not listen.
class HeldPort {
 public:
  HeldPort() {
    const int yes = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // error_of_port may bind it, too
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const { return number_; }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int number_ = 0;
};

// Workers that are shells; nothing listens, so none is ever ready.
class Supervised : public ::testing::Test {
 protected:
  FleetOptions fleet_of(const std::string& commands, int workers) {
    FleetOptions options{
        .stagger_us = 0,
        .of_processes = {.grace_us = 300'000,
                         .rules = {.first_pause_us = 1000, .most_failures = 3},
                         .print = [this](std::string_view line) { lines_.emplace_back(line); }}};
    for (int i = 0; i < workers; ++i)
      options.workers.push_back({.name = concat("w", i + 1), .port = ports_.emplace_back().number()});
    options.command = [commands](const WorkerPlan& worker) {
      return Command{
          .program = "/bin/sh", .arguments = {"-c", commands}, .environment = {"NAME=" + worker.name}};
    };
    options.should_end = [this] { return now_us() > end_us_; };
    return options;
  }

  void expect_failure(const FleetOptions& options, ErrorCode code, const std::string& part) {
    try {
      run_fleet(options);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.message(), HasSubstr(part));
    }
    EXPECT_LT(now_us(), end_us_);
  }

  int64_t end_us_ = now_us() + kPatience_us;
  std::vector<std::string> lines_;
  std::list<HeldPort> ports_;
};

TEST_F(Supervised, WorkersThatFailAgainAndAgainAreGivenUpAndThenTheFleetEnds) {
  expect_failure(fleet_of("echo $NAME says", 2), ErrorCode::io, "every worker has failed 3 times in a row");
  EXPECT_EQ(std::ranges::count(lines_, "w1 | w1 says"), 3);
  EXPECT_EQ(std::ranges::count(lines_, "w2 | w2 says"), 3);
}

TEST_F(Supervised, RefusedSettingsEndTheFleetWithTheReason) {
  expect_failure(fleet_of("echo begun; echo 'shoal: model: no such folder' >&2; exit 2", 1),
                 ErrorCode::invalid_argument, "w1 refuses its settings: model: no such folder");
  EXPECT_THAT(lines_, ElementsAre("w1 | begun", "w1 | shoal: model: no such folder"));
}

TEST_F(Supervised, AProgramThatIsNotThereEndsTheFleet) {
  FleetOptions options = fleet_of("", 1);
  options.command = [](const WorkerPlan&) { return Command{.program = "/no/such/program"}; };
  expect_failure(options, ErrorCode::io, "/no/such/program: cannot be executed");
}

TEST_F(Supervised, WorkersEndInOrderWhenTheyMay) {
  FleetOptions options =
      fleet_of("trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.01; done", 1);
  options.of_processes.grace_us = kPatience_us;
  options.should_end = [this] { return !lines_.empty(); };
  run_fleet(options);
  EXPECT_THAT(lines_, ElementsAre("w1 | begun", "w1 | bye"));
  EXPECT_LT(now_us(), end_us_);
}

TEST_F(Supervised, AWorkerThatDoesNotEndIsKilled) {
  FleetOptions options = fleet_of("trap '' TERM; echo begun; while :; do sleep 0.01; done", 1);
  options.should_end = [this] { return !lines_.empty(); };
  run_fleet(options);
  EXPECT_THAT(lines_, ElementsAre("w1 | begun"));
  EXPECT_LT(now_us(), end_us_);
}

TEST_F(Supervised, TheNextWaitsForTheOneBefore) {
  FleetOptions options = fleet_of("echo begun; sleep 60", 2);
  options.stagger_us = kPatience_us;
  options.should_end = [this, since = now_us()] { return !lines_.empty() && now_us() > since + 500'000; };
  run_fleet(options);
  EXPECT_THAT(lines_, ElementsAre("w1 | begun"));
}

}  // namespace
}  // namespace shoal::fleet
