#include "ops/transfer.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/stream_state.h"
#include "ops/execution.h"
#include "tensor/device_memory.h"

namespace shoal::ops::cuda {
namespace {

std::vector<int32_t> counted(int64_t count, int32_t first = 0) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

using Transfer = CudaTest;

TEST_F(Transfer, TheSourceOfAnUploadMayBeFreedAtOnce) {
  const Workspace::Scope scope(*ctx().workspace);
  std::vector<TensorView> views;
  // More than both halves of the page-locked memory hold, so that each is used again.
  constexpr int64_t kCount = 100'000;
  for (int32_t i = 0; i < 20; ++i) {
    std::vector<int32_t> values = counted(kCount, i);
    views.push_back(upload(ctx(), values));
    std::ranges::fill(values, -1);
  }
  for (int32_t i = 0; i < 20; ++i) EXPECT_EQ(get_ints(views[static_cast<size_t>(i)]), counted(kCount, i));
}

TEST_F(Transfer, TheTablesOfAPlanAreOnTheDevice) {
  const Workspace::Scope scope(*ctx().workspace);
  const std::vector<int32_t> offsets = {0, 2, 2, 5}, positions = {7, 8, 0, 1, 2}, pages = {4, 1, 0, 0, 3, 2};
  const BatchPlan plan{.rows = {offsets},
                       .positions = positions,
                       .page_table = pages,
                       .pages_per_sequence = 2,
                       .page_size = 16};
  const PlanTables tables = on_device(ctx(), plan).tables;
  EXPECT_EQ(get_ints(tables.offsets), offsets);
  EXPECT_EQ(get_ints(tables.positions), positions);
  EXPECT_EQ(get_ints(tables.sequences), (std::vector<int32_t>{0, 0, 2, 2, 2}));
  EXPECT_EQ(get_ints(tables.page_table), pages);
  EXPECT_FALSE(tables.single_rows);
}

TEST_F(Transfer, ADownloadBehindAMarkWaitsForEarlierWorkAlone) {
  constexpr int64_t kCount = 100'000;
  const Workspace::Scope scope(*ctx().workspace);
  const TensorView values = upload(ctx(), counted(kCount, 1));
  const TensorView large = ctx().workspace->alloc(DType::u8, {int64_t{1} << 28});
  const auto work = [&] {
    for (int i = 0; i < 300; ++i) fill_zero(ctx(), large);  // 25 ms
  };
  work();
  fill_zero(ctx(), values);
  const Mark made = mark(ctx());
  work();
  std::vector<int32_t> downloaded(kCount, -1);
  download(ctx(), made, values, downloaded.data());
  EXPECT_EQ(cudaStreamQuery(state_of(ctx()).stream()), cudaErrorNotReady);
  EXPECT_EQ(downloaded, std::vector<int32_t>(kCount, 0));
  synchronize(ctx());
}

TEST(Mark, OfACpuIsNothingAndItsDownloadsCopy) {
  ThreadTeam team(1);
  Execution execution({DeviceKind::cpu, 0}, team);
  const std::vector<int32_t> values = counted(10);
  std::vector<int32_t> downloaded(10);
  const Mark made = mark(execution.context());
  EXPECT_EQ(made, nullptr);
  download(execution.context(), made, upload(execution.context(), values), downloaded.data());
  EXPECT_EQ(downloaded, values);
}

using DeviceMemory = CudaTest;

TEST_F(DeviceMemory, AnAllocationTooLargeIsResourceExhaustedAndHarmsNothing) {
  for (const auto& take :
       std::initializer_list<std::function<void()>>{[] { Buffer(int64_t{1} << 50, kDevice); },
                                                    [] { Buffer::page_locked(int64_t{1} << 50, kDevice); }}) {
    try {
      take();
      ADD_FAILURE() << "a petabyte was granted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::resource_exhausted) << error.what();
      EXPECT_NE(std::string(error.what()).find("1125899906842624 bytes"), std::string::npos) << error.what();
    }
  }
  synchronize(ctx());
  EXPECT_EQ(get_ints(put(counted(10), {10})), counted(10));
}

TEST_F(DeviceMemory, AnInjectedFailureIsRefusedOnce) {
  device_memory::fail_allocation_after(1);
  EXPECT_NO_THROW(Buffer(16, kDevice));
  EXPECT_THROW(Buffer(16, kDevice), Error);
  EXPECT_NO_THROW(Buffer(16, kDevice));
  device_memory::fail_allocation_after(0);
  EXPECT_THROW(Buffer::page_locked(16, kDevice), Error);
  device_memory::fail_allocation_after(0);
  device_memory::fail_allocation_after(-1);
  EXPECT_NO_THROW(Buffer(16, kDevice));
}

TEST_F(DeviceMemory, AWorkspaceStaysUsableAfterARefusedMerge) {
  Workspace workspace(kDevice);
  const auto take_two_blocks = [&] {
    const Workspace::Scope scope(workspace);
    workspace.alloc(DType::u8, {2 << 20});
    workspace.alloc(DType::u8, {3 << 20});
  };
  take_two_blocks();
  device_memory::fail_allocation_after(0);
  EXPECT_THROW(Workspace::Scope{workspace}, Error);
  take_two_blocks();
  const Workspace::Scope scope(workspace);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.alloc(DType::u8, {1}).data()) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace.alloc(DType::u8, {1}).data()) % 256, 0u);
}

}  // namespace
}  // namespace shoal::ops::cuda
