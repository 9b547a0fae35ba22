#include <gmock/gmock.h>

#include "ops/step_graph_testing.h"

namespace shoal::ops {
namespace {

// A CPU calls the body every time and records nothing.
class RecordedStep : public RecordedStepOf<OpTest> {
 protected:
  int on_gpu_or_cpu(int of_gpu, int of_cpu) const { return on_gpu() ? of_gpu : of_cpu; }
};

TEST_P(RecordedStep, ReplaysOnNewContentsWithoutCallingItsBody) {
  for (int32_t value = 1; value <= 6; ++value) {
    EXPECT_EQ(run(value), cleared(value));
    EXPECT_EQ(calls_, on_gpu_or_cpu(std::min(value, 2), value)) << "run, record, then replay";
  }
  EXPECT_EQ(recorded_.count(), on_gpu_or_cpu(1, 0));
}

TEST_P(RecordedStep, WithoutGraphsTheBodyRunsEveryTime) {
  ctx().graphs = nullptr;
  for (int32_t value = 1; value <= 4; ++value) EXPECT_EQ(run(value), cleared(value));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(recorded_.count(), 0);
}

TEST_P(RecordedStep, EachKeyHasItsOwnGraph) {
  for (int32_t value = 1; value <= 3; ++value)
    for (const int64_t rows : {1, 2}) EXPECT_EQ(run(value, rows), cleared(value));
  EXPECT_EQ(calls_, on_gpu_or_cpu(4, 6));
  EXPECT_EQ(recorded_.count(), on_gpu_or_cpu(2, 0));
  recorded_.clear();
  EXPECT_EQ(recorded_.count(), 0);
  EXPECT_EQ(run(9), cleared(9));
  EXPECT_EQ(calls_, on_gpu_or_cpu(5, 7));
}

TEST_P(RecordedStep, ExceptionsOfTheBodyReachTheCaller) {
  EXPECT_THROW(run_step(ctx(), {}, [] { fail(ErrorCode::internal, "a step"); }), Error);
}

TEST_P(RecordedStep, AFailingBodyLeavesTheStreamUsable) {
  // On a GPU the first failure is in a plain run, the second while it is recorded.
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
  EXPECT_EQ(calls_, on_gpu_or_cpu(4, 5));
  EXPECT_EQ(recorded_.count(), on_gpu_or_cpu(1, 0));
}

TEST_P(RecordedStep, ViewsAndCopiesStayInsideTheBlock) {
  const StepBlock block(ctx(), 96), none;
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_EQ(block.bytes(), 96);
  EXPECT_THAT(std::span(block.host(), 96), testing::Each(std::byte{0}));
  EXPECT_THAT(get_ints(block.device(0, DType::i32, {24})), testing::Each(0));
  EXPECT_EQ(block.device(32, DType::i32, {2, 4}).shape(), (Shape{2, 4}));
  EXPECT_NO_THROW(block.device(80, DType::f32, {4}));
  EXPECT_THROW(block.device(80, DType::f32, {5}), Error);
  EXPECT_THROW(block.device(8, DType::f32, {1}), Error);
  EXPECT_THROW(block.device(-16, DType::f32, {1}), Error);
  EXPECT_THROW(block.copy_to_device(ctx(), 97), Error);
  EXPECT_THROW(block.copy_to_host(ctx(), 97), Error);
  EXPECT_THROW(block.copy_to_host(ctx(), -1), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, RecordedStep, testing::ValuesIn(every_machine()), name_of_machine);

class StepBlockOnTheCpu : public testing::Test, protected OpFixture {
 protected:
  void SetUp() override { open(machines_of({CpuIsa::portable}).front()); }
};

TEST_F(StepBlockOnTheCpu, HostAndDeviceSideOfABlockAreTheSameMemory) {
  const StepBlock block(ctx(), 96);
  const TensorView numbers = block.device(32, DType::i32, {2, 4});
  EXPECT_EQ(numbers.data(), block.host() + 32);
  numbers.as<int32_t>()[7] = 5;
  block.copy_to_host(ctx(), 96);
  EXPECT_EQ(*reinterpret_cast<int32_t*>(block.host() + 32 + 28), 5);
  block.host()[32] = std::byte{9};
  block.copy_to_device(ctx(), 64);
  EXPECT_EQ(numbers.as<int32_t>()[0], 9);
}

}  // namespace
}  // namespace shoal::ops
