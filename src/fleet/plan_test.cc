#include "fleet/plan.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> shown(const FleetRequest& request) {
  std::vector<std::string> lines;
  for (const WorkerPlan& worker : plan_workers(request)) {
    std::string line =
        concat(worker.name, " ", worker.gpu ? concat("cuda:", *worker.gpu) : "cpu", " ", worker.port);
    for (const int cpu : worker.cpus) line += concat(" ", cpu);
    lines.push_back(line);
  }
  return lines;
}

void expect_plan_refused(const FleetRequest& request, const std::string& part) {
  try {
    plan_workers(request);
    ADD_FAILURE() << "accepted: " << request.devices;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr(part));
  }
}

TEST(Plan, AutoIsEveryGpuAndWithoutOneTheCpu) {
  EXPECT_THAT(shown({.gpus = 2, .cpus = {0, 1}}), ElementsAre("w1 cuda:0 8001 0", "w2 cuda:1 8002 1"));
  EXPECT_THAT(shown({.gpus = 0, .cpus = {0, 1}}), ElementsAre("w1 cpu 8001 0 1"));
}

TEST(Plan, WorkersOfADeviceLieBesideEachOther) {
  EXPECT_THAT(shown({.devices = "cuda:1,cuda:0", .per_device = 2, .base_port = 9000, .gpus = 2}),
              ElementsAre("w1 cuda:1 9000", "w2 cuda:1 9001", "w3 cuda:0 9002", "w4 cuda:0 9003"));
}

TEST(Plan, ANumberInAllIsSpreadOverTheDevices) {
  EXPECT_THAT(shown({.per_device = 9, .workers = 3, .gpus = 2}),
              ElementsAre("w1 cuda:0 8001", "w2 cuda:0 8002", "w3 cuda:1 8003"));
  EXPECT_THAT(shown({.workers = 1, .gpus = 2}), ElementsAre("w1 cuda:0 8001"));
  EXPECT_THAT(shown({.devices = "cpu", .workers = 2, .cpus = {0, 1}}),
              ElementsAre("w1 cpu 8001 0", "w2 cpu 8002 1"));
}

TEST(Plan, AFleetMayHaveNoWorkersOfItsOwn) { EXPECT_TRUE(plan_workers({.workers = 0, .gpus = 2}).empty()); }

TEST(Plan, WorkersOnCpusShareNoCpuAndLeaveNone) {
  EXPECT_THAT(shown({.devices = "cpu", .per_device = 3, .cpus = {4, 5, 6, 7, 0, 1, 2}}),
              ElementsAre("w1 cpu 8001 4 5", "w2 cpu 8002 6 7", "w3 cpu 8003 0 1 2"));
  EXPECT_THAT(shown({.devices = "cpu,cuda:0", .per_device = 1, .gpus = 1, .cpus = {3}}),
              ElementsAre("w1 cpu 8001 3", "w2 cuda:0 8002 3"));
}

TEST(Plan, WorkersOnGpusShareOutTheCpusOfTheirNode) {
  const FleetRequest two_nodes{.gpus = 4,
                               .gpu_nodes = {1, 0, 1, std::nullopt},
                               .cpus = {0, 1, 2, 4, 5, 6},
                               .cpu_nodes = {0, 0, 0, 1, 1, 1}};
  EXPECT_THAT(shown(two_nodes), ElementsAre("w1 cuda:0 8001 4", "w2 cuda:1 8002 0 1 2", "w3 cuda:2 8003 5 6",
                                            "w4 cuda:3 8004 0 1 2 4 5 6"));
  // A node without CPUs of ours is as good as none.
  EXPECT_THAT(shown({.gpus = 1, .gpu_nodes = {7}, .cpus = {0, 1}, .cpu_nodes = {0, 0}}),
              ElementsAre("w1 cuda:0 8001 0 1"));
  EXPECT_THAT(shown({.devices = "cuda:0", .per_device = 3, .gpus = 1, .cpus = {0, 1}}),
              ElementsAre("w1 cuda:0 8001 0", "w2 cuda:0 8002 1", "w3 cuda:0 8003 0"));
}

TEST(Plan, MoreWorkersThanCpusTakeThemInTurn) {
  EXPECT_THAT(shown({.devices = "cpu", .per_device = 3, .cpus = {4, 5}}),
              ElementsAre("w1 cpu 8001 4", "w2 cpu 8002 5", "w3 cpu 8003 4"));
}

TEST(Plan, RefusesWhatTheMachineDoesNotHave) {
  for (const char* devices :
       {"", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0,", "cuda:0 ", "cuda:99999999999"})
    expect_plan_refused({.devices = devices, .gpus = 1, .cpus = {0}},
                        "devices: expected auto, cpu or cuda:N");
  expect_plan_refused({.devices = "cuda:1", .gpus = 1, .cpus = {0}},
                      "cuda:1 does not exist; this machine has 1");
  expect_plan_refused({.devices = "cpu,cpu", .cpus = {0, 1}}, "stands there twice");
  expect_plan_refused({.devices = "cpu", .per_device = 2, .base_port = 65535, .cpus = {0, 1}}, "port 65536");
  EXPECT_THAT(shown({.devices = "cpu", .base_port = 65535, .cpus = {0}}), ElementsAre("w1 cpu 65535 0"));
}

}  // namespace
}  // namespace shoal::fleet
