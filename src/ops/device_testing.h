// The device that a test program runs on: SHOAL_TEST_DEVICE, "cpu" when it is not set. One program serves
// both: on the CPU in every run of the tests, on a GPU under the label gpu.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "ops/device_choice.h"
#include "ops/execution.h"

namespace shoal::ops {

inline std::string test_device_name() {
  const char* name = std::getenv("SHOAL_TEST_DEVICE");
  return name ? name : "cpu";
}

inline Device test_device() { return choose_device(test_device_name()); }
// Skips a test of plans for a GPU where none can be made; the GPU need not be there.
#define SKIP_WITHOUT_CUDA() \
  if (!::shoal::ops::built_with_cuda()) GTEST_SKIP() << "plans for a GPU need a build with CUDA"

inline bool testing_on_cpu() { return test_device_name() == "cpu"; }

// Skips every test of a program whose device is not there.
class NeedsTestDevice : public ::testing::Environment {
 public:
  void SetUp() override {
    try {
      test_device();
    } catch (const Error& error) {
      std::printf("[  SKIPPED ] %s\n", error.message().c_str());  // the form that ctest counts
      GTEST_SKIP() << error.message();
    }
  }
};
inline ::testing::Environment* const kNeedsTestDevice =
    ::testing::AddGlobalTestEnvironment(new NeedsTestDevice);

// A separate context on that device, with a team of `threads`.
struct TestMachine {
  explicit TestMachine(int threads = 1, bool record = false)
      : device(test_device()), team(threads), execution(device, team, {.record = record}) {}
  TestMachine(const TestMachine&) = delete;

  Device device;
  ThreadTeam team;
  Execution execution;
  Context& context = execution.context();
  Workspace& workspace = *context.workspace;
};

}  // namespace shoal::ops
