#include "fleet/memory_share.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGB = 1'000'000'000;

void expect_too_large(const DeviceMemory& device, const std::string& part) {
  try {
    share_memory(device);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr(part));
  }
}

TEST(ShareMemory, AlikeWorkersGetAlikeShares) {
  const MemoryNeed need{.free_bytes = 80 * kGB, .fixed_bytes = 4 * kGB, .flexible = 1, .fraction = 0.25};
  EXPECT_THAT(share_memory({.device = "cuda:0", .workers = {need}}), ElementsAre(19 * kGB));
  EXPECT_THAT(share_memory({.device = "cuda:0", .workers = {need, need}}), ElementsAre(9 * kGB, 9 * kGB));
  EXPECT_THAT(share_memory({.device = "cuda:0", .workers = {need, need}, .bytes_of_a_process = 8 * kGB / 10}),
              ElementsAre(89 * kGB / 10, 89 * kGB / 10));
}

TEST(ShareMemory, WhoSaysWhatItTakesGetsNoShare) {
  const MemoryNeed fixed{.free_bytes = 40 * kGB, .fixed_bytes = 20 * kGB};
  const MemoryNeed two_models{
      .free_bytes = 40 * kGB, .fixed_bytes = 10 * kGB, .flexible = 2, .fraction = 0.5};
  EXPECT_THAT(share_memory({.device = "cpu", .workers = {fixed, two_models}}), ElementsAre(0, 5 * kGB / 2));
}

TEST(ShareMemory, NobodyGetsMoreThanItHasUseFor) {
  MemoryNeed need{.free_bytes = 80 * kGB, .fixed_bytes = 4 * kGB, .flexible = 1, .fraction = 0.5};
  need.most_bytes = 3 * kGB;
  EXPECT_THAT(share_memory({.device = "cpu", .workers = {need, need}}), ElementsAre(3 * kGB, 3 * kGB));
}

// The process of one takes memory that another finds taken.
TEST(ShareMemory, TheMostThatAnyFoundFreeCounts) {
  const MemoryNeed first{.free_bytes = 9 * kGB, .fixed_bytes = kGB, .flexible = 1, .fraction = 1};
  const MemoryNeed second{.free_bytes = 10 * kGB, .fixed_bytes = kGB, .flexible = 1, .fraction = 1};
  EXPECT_THAT(share_memory({.device = "cuda:0", .workers = {first, second}}), ElementsAre(4 * kGB, 4 * kGB));
}

TEST(ShareMemory, SharesNeverExceedWhatIsFree) {
  const MemoryNeed need{.free_bytes = 1001, .fixed_bytes = 100, .flexible = 3, .fraction = 0.95};
  const std::vector<int64_t> shares = share_memory({.device = "cpu", .workers = {need, need, need}});
  for (const int64_t share : shares) EXPECT_LE(9 * share + 300, 1001);
}

TEST(ShareMemory, WorkersThatDoNotFitAreRefusedWithNumbers) {
  const MemoryNeed need{.free_bytes = 10 * kGB, .fixed_bytes = 4 * kGB};
  expect_too_large({.device = "cuda:1", .workers = {need, need, need}},
                   "memory: 3 workers on cuda:1 would need at least 12.00 GB, and 10.00 GB are free");
  expect_too_large({.device = "cuda:1", .workers = {need, need}, .bytes_of_a_process = 3 * kGB}, "11.00 GB");
  expect_too_large({.device = "cpu", .workers = {{.free_bytes = 1, .fixed_bytes = 2}}}, "1 worker on cpu");
  EXPECT_THAT(share_memory({.device = "cpu", .workers = {need, need}}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace shoal::fleet
