#include "ops/step_graph.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>

namespace shoal::ops {
namespace {

class StepGraphTest : public testing::Test {
 protected:
  ThreadTeam team_{1};
  Workspace workspace_;
  StepGraphs graphs_;
  Context ctx_{.team = &team_, .workspace = &workspace_, .graphs = &graphs_};
};

TEST_F(StepGraphTest, TheCpuRunsTheBodyEveryTime) {
  int calls = 0;
  for (StepGraphs* graphs : {&graphs_, static_cast<StepGraphs*>(nullptr)}) {
    ctx_.graphs = graphs;
    for (int64_t rows : {1, 1, 2, 1}) run_step(ctx_, {.owner = this, .rows = rows}, [&] { ++calls; });
  }
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(graphs_.count(), 0);
  graphs_.clear();
}

TEST_F(StepGraphTest, ExceptionsOfTheBodyReachTheCaller) {
  EXPECT_THROW(run_step(ctx_, {}, [] { fail(ErrorCode::internal, "a step"); }), Error);
}

TEST_F(StepGraphTest, HostAndDeviceSideOfABlockAreTheSameMemory) {
  const StepBlock block(ctx_, 96);
  EXPECT_EQ(block.bytes(), 96);
  EXPECT_THAT(std::span(block.host(), 96), testing::Each(std::byte{0}));
  const TensorView numbers = block.device(32, DType::i32, {2, 4});
  EXPECT_EQ(numbers.data(), block.host() + 32);
  EXPECT_EQ(numbers.shape(), (Shape{2, 4}));
  numbers.as<int32_t>()[7] = 5;
  block.copy_to_host(ctx_, 96);
  EXPECT_EQ(*reinterpret_cast<int32_t*>(block.host() + 32 + 28), 5);
  block.host()[32] = std::byte{9};
  block.copy_to_device(ctx_, 64);
  EXPECT_EQ(numbers.as<int32_t>()[0], 9);
}

TEST_F(StepGraphTest, ViewsAndCopiesStayInsideTheBlock) {
  const StepBlock block(ctx_, 96), none;
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_NO_THROW(block.device(80, DType::f32, {4}));
  EXPECT_THROW(block.device(80, DType::f32, {5}), Error);
  EXPECT_THROW(block.device(8, DType::f32, {1}), Error);
  EXPECT_THROW(block.device(-16, DType::f32, {1}), Error);
  EXPECT_THROW(block.copy_to_device(ctx_, 97), Error);
  EXPECT_THROW(block.copy_to_host(ctx_, -1), Error);
}

}  // namespace
}  // namespace shoal::ops
