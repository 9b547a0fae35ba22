// Shared by the tests of recorded steps.
#pragma once

#include <algorithm>
#include <functional>

#include "ops/op_testing.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops {

// A step of every kind of op there is: a copy in, kernels on owned memory and on scratch, a copy out. Test: a
// fixture of OpFixture.
template <typename Test>
class RecordedStepOf : public Test {
 protected:
  static constexpr int64_t kCount = 64, kBytes = kCount * static_cast<int64_t>(sizeof(int32_t));
  static constexpr int64_t kCleared = 4;  // the leading values that the step sets to zero

  void SetUp() override {
    Test::SetUp();
    if (testing::Test::IsSkipped()) return;
    block_ = StepBlock(this->ctx(), kBytes);
    this->ctx().graphs = &recorded_;
  }

  static std::span<int32_t> host_values(const StepBlock& block) {
    return {reinterpret_cast<int32_t*>(block.host()), static_cast<size_t>(kCount)};
  }
  // The step's result for `value` everywhere: zeros at the front.
  static std::vector<int32_t> cleared(int32_t value) {
    std::vector<int32_t> values(static_cast<size_t>(kCount), value);
    std::fill_n(values.begin(), kCleared, 0);
    return values;
  }

  void body() {
    ++calls_;
    Context& ctx = this->ctx();
    const Workspace::Scope scope(*ctx.workspace);
    block_.copy_to_device(ctx, kBytes);
    for (int i = 0; i < 8; ++i) fill_zero(ctx, ctx.workspace->alloc(DType::u8, {scratch_bytes_}));
    fill_zero(ctx, block_.device(0, DType::i32, {kCleared}));
    block_.copy_to_host(ctx, kBytes);
    in_body_();
  }

  // Runs the step on `value` everywhere, and returns its result on the host.
  std::vector<int32_t> run(int32_t value, int64_t rows = 1) {
    std::ranges::fill(host_values(block_), value);
    run_step(this->ctx(), {.owner = this, .step = 0, .rows = rows}, [&] { body(); });
    synchronize(this->ctx());
    EXPECT_EQ(this->get_ints(block_.device(0, DType::i32, {kCount})), cleared(value));
    const std::span<int32_t> left = host_values(block_);
    return {left.begin(), left.end()};
  }

  StepBlock block_;
  StepGraphs recorded_;
  int64_t scratch_bytes_ = 1000;
  std::function<void()> in_body_ = [] {};
  int calls_ = 0;
};

}  // namespace shoal::ops
