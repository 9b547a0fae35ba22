#include "ops/step_graph.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/transfer.h"
#include "tensor/device_memory.h"

namespace shoal::ops {
namespace {

constexpr int64_t kCount = 64, kBytes = kCount * static_cast<int64_t>(sizeof(int32_t));
constexpr int64_t kCleared = 4;  // the leading values that the step below sets to zero

std::span<int32_t> host_values(const StepBlock& block) {
  return {reinterpret_cast<int32_t*>(block.host()), static_cast<size_t>(kCount)};
}

// Its result for `value` everywhere: zeros at the front.
std::vector<int32_t> cleared(int32_t value) {
  std::vector<int32_t> values(static_cast<size_t>(kCount), value);
  std::fill_n(values.begin(), kCleared, 0);
  return values;
}

// A step of every kind of op there is: a copy in, kernels on owned memory and on scratch, a copy out.
class RecordedStep : public cuda::CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    block_ = StepBlock(ctx(), kBytes);
    ctx().graphs = &graphs();
  }

  void body() {
    ++calls_;
    const Workspace::Scope scope(*ctx().workspace);
    block_.copy_to_device(ctx(), kBytes);
    for (int i = 0; i < 8; ++i) fill_zero(ctx(), ctx().workspace->alloc(DType::u8, {scratch_bytes_}));
    fill_zero(ctx(), block_.device(0, DType::i32, {kCleared}));
    block_.copy_to_host(ctx(), kBytes);
    in_body_();
  }

  // Runs the step on `value` everywhere, and returns its result on the host.
  std::vector<int32_t> run(int32_t value, int64_t rows = 1) {
    std::ranges::fill(host_values(block_), value);
    run_step(ctx(), {.owner = this, .step = 0, .rows = rows}, [&] { body(); });
    synchronize(ctx());
    EXPECT_EQ(get_ints(block_.device(0, DType::i32, {kCount})), cleared(value));
    const std::span<int32_t> left = host_values(block_);
    return {left.begin(), left.end()};
  }

  // Where the workspace's memory begins, after its blocks were merged.
  const void* scratch_address() {
    const Workspace::Scope scope(*ctx().workspace);
    return ctx().workspace->alloc(DType::u8, {1}).data();
  }

  void outgrow_the_scratch() {
    const Workspace::Scope scope(*ctx().workspace);
    ctx().workspace->alloc(DType::u8, {int64_t{64} << 20});
  }

  StepBlock block_;
  int64_t scratch_bytes_ = 1000;
  std::function<void()> in_body_ = [] {};
  int calls_ = 0;
};

TEST_F(RecordedStep, ReplaysOnNewContentsWithoutCallingItsBody) {
  for (int32_t value = 1; value <= 6; ++value) {
    EXPECT_EQ(run(value), cleared(value));
    EXPECT_EQ(calls_, std::min(value, 2)) << "run, record, then replay";
  }
  EXPECT_EQ(graphs().count(), 1);
}

TEST_F(RecordedStep, WithoutGraphsTheBodyRunsEveryTime) {
  ctx().graphs = nullptr;
  for (int32_t value = 1; value <= 3; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(graphs().count(), 0);
}

TEST_F(RecordedStep, EachKeyHasItsOwnGraph) {
  for (int32_t value = 1; value <= 3; ++value)
    for (const int64_t rows : {1, 2}) EXPECT_EQ(run(value, rows), cleared(value));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(graphs().count(), 2);
  graphs().clear();
  EXPECT_EQ(graphs().count(), 0);
  EXPECT_EQ(run(9), cleared(9));
  EXPECT_EQ(calls_, 5);
}

TEST_F(RecordedStep, IsRecordedAgainWhenItsScratchHasMoved) {
  for (int32_t value = 1; value <= 3; ++value) run(value);
  const void* const before = scratch_address();
  outgrow_the_scratch();
  ASSERT_NE(scratch_address(), before);
  // Memory of the size that was given back, so that a replay on old addresses would be seen here.
  const Tensor witness = put(std::vector<int32_t>(1 << 18, 77), {1 << 18});
  EXPECT_EQ(run(4), cleared(4));
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(run(5), cleared(5));
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(get_ints(witness), std::vector<int32_t>(1 << 18, 77));
}

TEST_F(RecordedStep, AStepThatNeedsSeveralBlocksIsRecordedOnceTheyAreMerged) {
  scratch_bytes_ = int64_t{3} << 20;
  for (int32_t value = 1; value <= 4; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 2);
}

TEST_F(RecordedStep, AfterAFailedMergeTheBodyRunsAgain) {
  scratch_bytes_ = int64_t{3} << 20;  // more than a new block holds
  for (int32_t value = 1; value <= 3; ++value) run(value);
  outgrow_the_scratch();
  device_memory::fail_allocation_after(0);
  EXPECT_THROW(run_step(ctx(), {.owner = this, .rows = 1}, [&] { body(); }), Error);
  for (int32_t value = 4; value <= 6; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 4) << "run and recorded once more";
}

TEST_F(RecordedStep, AFailingBodyLeavesTheStreamUsable) {
  // The first failure is in a plain run, the second while it is recorded.
  for (int32_t failed = 0; failed < 2; ++failed) {
    in_body_ = [] { fail(ErrorCode::cancelled, "enough"); };
    try {
      run(1);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    }
    synchronize(ctx());
    in_body_ = [] {};
    EXPECT_EQ(run(7), cleared(7));
  }
  EXPECT_EQ(run(8), cleared(8));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(graphs().count(), 1);
}

TEST_F(RecordedStep, AnAllocationFailureInTheBodyReachesTheCaller) {
  run(1);
  scratch_bytes_ = int64_t{100} << 20;  // the workspace would have to grow while the step is recorded
  EXPECT_THROW(run(2), Error);
  scratch_bytes_ = 1000;
  for (int32_t value = 3; value <= 5; ++value) EXPECT_EQ(run(value), cleared(value));
}

TEST_F(RecordedStep, AStepThatCannotBeRecordedIsRefusedFromTheFirstRun) {
  const std::vector<int32_t> values(3, 1);
  for (const auto& forbidden : std::initializer_list<std::function<void()>>{
           [&] { upload(ctx(), values); }, [&] { synchronize(ctx()); },
           [&] { to_host(ctx(), block_.device(0, DType::i32, {kCount})); },
           [&] { run_step(ctx(), {.step = 5}, [] {}); }}) {
    in_body_ = forbidden;
    EXPECT_THROW(run(1), Error);
    in_body_ = [] {};
    synchronize(ctx());  // what the body had given is still to come, the copy out over the host's values too
    EXPECT_EQ(run(2), cleared(2));
    graphs().clear();
  }
  const Workspace::Scope scope(*ctx().workspace);
  EXPECT_THROW(run(1), Error);
}

TEST_F(RecordedStep, OtherThreadsMayAllocateAndCopyDuringRecording) {
  in_body_ = [this] {
    std::thread([this] {
      const Tensor there = put(std::vector<int32_t>(1000, 3), {1000});
      const Tensor back(DType::i32, {1000});
      copy(there, back);
      EXPECT_EQ(back.span<int32_t>()[999], 3);
      const std::unique_ptr<Stream> stream = Stream::create(kDevice, StreamPriority::high);
    }).join();
  };
  for (int32_t value = 1; value <= 3; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 2);
}

TEST_F(RecordedStep, ViewsOfABlockStayInsideIt) {
  EXPECT_THROW(block_.device(8, DType::i32, {1}), Error);
  EXPECT_THROW(block_.device(-16, DType::i32, {1}), Error);
  EXPECT_THROW(block_.device(16, DType::i32, {kCount}), Error);
  EXPECT_THROW(block_.copy_to_device(ctx(), kBytes + 1), Error);
  EXPECT_THROW(block_.copy_to_host(ctx(), -1), Error);
  EXPECT_EQ(get_ints(StepBlock(ctx(), 16).device(0, DType::i32, {4})), std::vector<int32_t>(4, 0));
}

TEST(RecordedStepOnTheCpu, RunsTheBodyAndABlockHasOneMemory) {
  ThreadTeam team(1);
  Workspace workspace;
  StepGraphs graphs;
  Context ctx{.device = {}, .team = &team, .workspace = &workspace, .graphs = &graphs};
  const StepBlock block(ctx, kBytes);
  EXPECT_EQ(block.device(16, DType::i32, {1}).data(), block.host() + 16);
  for (int32_t value = 1; value <= 4; ++value) {
    std::ranges::fill(host_values(block), value);
    run_step(ctx, {.owner = &block}, [&] {
      block.copy_to_device(ctx, kBytes);
      fill_zero(ctx, block.device(0, DType::i32, {kCleared}));
      block.copy_to_host(ctx, kBytes);
    });
    EXPECT_TRUE(std::ranges::equal(host_values(block), cleared(value)));
  }
  EXPECT_EQ(graphs.count(), 0);
  EXPECT_THROW(block.copy_to_host(ctx, kBytes + 1), Error);
}

TEST(StreamCreate, FailsWithoutAGpuOrForAMissingOne) {
  EXPECT_EQ(Stream::create(Device{}), nullptr);
  try {
    Stream::create({DeviceKind::cuda, 1000});
    ADD_FAILURE() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.what();
  }
}

}  // namespace
}  // namespace shoal::ops
