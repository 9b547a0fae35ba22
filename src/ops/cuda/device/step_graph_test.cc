// What a GPU alone has: memory that a recording keeps addresses of, and what a stream cannot record.
#include <thread>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/step_graph_testing.h"
#include "tensor/device_memory.h"

namespace shoal::ops {
namespace {

class CudaRecordedStep : public RecordedStepOf<cuda::CudaTest> {
 protected:
  // Where the workspace's memory begins, after its blocks were merged.
  const void* scratch_address() {
    const Workspace::Scope scope(*ctx().workspace);
    return ctx().workspace->alloc(DType::u8, {1}).data();
  }

  void outgrow_the_scratch() {
    const Workspace::Scope scope(*ctx().workspace);
    ctx().workspace->alloc(DType::u8, {int64_t{64} << 20});
  }
};

TEST_F(CudaRecordedStep, IsRecordedAgainWhenItsScratchHasMoved) {
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

TEST_F(CudaRecordedStep, AStepThatNeedsSeveralBlocksIsRecordedOnceTheyAreMerged) {
  scratch_bytes_ = int64_t{3} << 20;
  for (int32_t value = 1; value <= 4; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 2);
}

TEST_F(CudaRecordedStep, AfterAFailedMergeTheBodyRunsAgain) {
  scratch_bytes_ = int64_t{3} << 20;  // more than a new block holds
  for (int32_t value = 1; value <= 3; ++value) run(value);
  outgrow_the_scratch();
  device_memory::fail_allocation_after(0);
  EXPECT_THROW(run_step(ctx(), {.owner = this, .rows = 1}, [&] { body(); }), Error);
  for (int32_t value = 4; value <= 6; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 4) << "run and recorded once more";
}

TEST_F(CudaRecordedStep, AnAllocationFailureInTheBodyReachesTheCaller) {
  run(1);
  scratch_bytes_ = int64_t{100} << 20;  // the workspace would have to grow while the step is recorded
  EXPECT_THROW(run(2), Error);
  scratch_bytes_ = 1000;
  for (int32_t value = 3; value <= 5; ++value) EXPECT_EQ(run(value), cleared(value));
}

TEST_F(CudaRecordedStep, AStepThatCannotBeRecordedIsRefusedFromTheFirstRun) {
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
    recorded_.clear();
  }
  const Workspace::Scope scope(*ctx().workspace);
  EXPECT_THROW(run(1), Error);
}

TEST_F(CudaRecordedStep, OtherThreadsMayAllocateAndCopyDuringRecording) {
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
