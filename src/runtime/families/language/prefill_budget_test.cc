#include "runtime/families/language/prefill_budget.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::runtime {
namespace {

constexpr int64_t kFrameUs = 50'000;

std::vector<ActiveJob> speaking(int64_t lead_us) {
  return {{.id = 1, .columns = 1, .frames = 9, .lead_us = lead_us}};
}

// Of so many prompt columns, beside any number of sequences.
PrefillBudget of_columns(int64_t columns) { return {{columns, columns + 1000}, kFrameUs}; }

PrefillBudget measured() {
  PrefillBudget budget = of_columns(256);
  budget.measure(100, 200'000);  // 2 ms a column
  return budget;
}

TEST(PrefillBudget, UntilTheCostIsKnownListenersWithLeadAvoidTheLargestSteps) {
  PrefillBudget budget = of_columns(2048);
  EXPECT_EQ(budget.columns(speaking(100'000)), 256);
  budget.measure(31, 1'000'000);  // too few columns to say anything
  EXPECT_EQ(budget.columns(speaking(100'000)), 256);
  EXPECT_EQ(budget.columns(speaking(-1)), 2048);
  EXPECT_EQ(budget.columns({}), 2048);
  EXPECT_EQ(of_columns(100).columns(speaking(100'000)), 100);
}

TEST(PrefillBudget, LeavesListenersTheirLead) {
  EXPECT_EQ(measured().columns(speaking(200'000)), 100);
  EXPECT_EQ(measured().columns(speaking(10'000'000)), 256);
  EXPECT_EQ(measured().columns(speaking(100'000)), 50);
  std::vector<ActiveJob> two = speaking(400'000);
  two.push_back({.id = 2, .frames = 3, .lead_us = 160'000});
  EXPECT_EQ(measured().columns(two), 80);
}

TEST(PrefillBudget, IsFullWhenListenersHaveRunDryOrNobodySpeaks) {
  EXPECT_EQ(measured().columns(speaking(-1'000'000)), 256);
  EXPECT_EQ(measured().columns(speaking(kFrameUs)), 256);
  std::vector<ActiveJob> paused = speaking(200'000);
  paused[0].paused = true;
  EXPECT_EQ(measured().columns(paused), 256);
  EXPECT_EQ(measured().columns({}), 256);
}

TEST(PrefillBudget, HasALowerBound) {
  PrefillBudget slow = of_columns(256);
  slow.measure(100, 10'000'000);
  EXPECT_EQ(slow.columns(speaking(150'000)), 32);
  PrefillBudget few = of_columns(8);
  few.measure(100, 10'000'000);
  EXPECT_EQ(few.columns(speaking(150'000)), 8);
}

TEST(PrefillBudget, LeavesRowsOfTheStepToThoseWhoSpeak) {
  const PrefillBudget budget({256, 256}, kFrameUs);
  std::vector<ActiveJob> jobs(20, speaking(-1)[0]);
  EXPECT_EQ(budget.columns(jobs), 236);
  jobs[0].paused = true, jobs[1].finishing = true;
  jobs[2].columns = 9, jobs[2].columns_done = 3;  // computes its columns again: it is a prompt
  EXPECT_EQ(budget.columns(jobs), 239);
  EXPECT_EQ(PrefillBudget({40, 40}, kFrameUs).columns(jobs), 32);
}

TEST(SizeOfAStep, TakesMorePromptWhereAGpuServesMany) {
  constexpr Device kDeviceCpu{DeviceKind::cpu, 0}, kDeviceGpu{DeviceKind::cuda, 0};
  EngineConfig config;
  for (const auto& [batch, columns] : {std::pair{1, 256}, {8, 256}, {32, 1024}, {64, 2048}, {1024, 2048}}) {
    config.max_batch_size = batch;
    const StepSize gpu = size_of_a_step(config, kDeviceGpu), cpu = size_of_a_step(config, kDeviceCpu);
    EXPECT_EQ(gpu.columns, columns) << batch;
    EXPECT_EQ(gpu.rows, columns) << batch;
    EXPECT_EQ(cpu.columns, 256) << batch;
    EXPECT_EQ(cpu.rows, 256 + batch) << batch;
  }
  config.prefill_columns = 50;
  for (const Device device : {kDeviceGpu, kDeviceCpu}) {
    EXPECT_EQ(size_of_a_step(config, device).columns, 50);
    EXPECT_EQ(size_of_a_step(config, device).rows, 50 + 1024);
  }
}

}  // namespace
}  // namespace shoal::runtime
