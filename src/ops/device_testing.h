// The device that a test program runs on: SHOAL_TEST_DEVICE, "cpu" when it is not set. One program serves both: on
// the CPU in every run of the tests, on a GPU under the label gpu.
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "ops/context.h"
#include "ops/device_choice.h"
#include "ops/step_graph.h"
#include "ops/stream.h"

namespace shoal::ops {

inline std::string test_device_name() {
  const char* name = std::getenv("SHOAL_TEST_DEVICE");
  return name ? name : "cpu";
}

inline Device test_device() { return choose_device(test_device_name()); }
inline bool testing_on_cpu() { return test_device_name() == "cpu"; }

// Skips every test of a program whose device is not there.
class NeedsTestDevice : public testing::Environment {
 public:
  void SetUp() override {
    try {
      test_device();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
};
inline testing::Environment* const kNeedsTestDevice =
    testing::AddGlobalTestEnvironment(new NeedsTestDevice);

// A context of its own on that device, with a team of `threads`.
class TestMachine {
 public:
  explicit TestMachine(int threads = 1)
      : device(test_device()), team(threads), workspace(device), stream(Stream::create(device)) {
    context = {.device = device,
               .team = &team,
               .workspace = &workspace,
               .stream = stream.get(),
               .host = &host,
               .graphs = nullptr};
  }
  TestMachine(const TestMachine&) = delete;
  // Records steps from here on.
  void record() { context.graphs = &graphs; }

  Device device;
  ThreadTeam team;
  Workspace workspace, host;
  std::unique_ptr<Stream> stream;
  StepGraphs graphs;
  Context context;
};

}  // namespace shoal::ops
