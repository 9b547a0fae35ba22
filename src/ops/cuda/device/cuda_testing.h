// What the tests of the CUDA kernels share.
#pragma once

#include <memory>

#include "ops/op_testing.h"
#include "ops/step_graph.h"

namespace shoal::ops::cuda {

// A test on a GPU alone; skipped where none can run it.
class CudaTest : public testing::Test, protected OpFixture {
 protected:
  static constexpr Device kDevice{DeviceKind::cuda, 0};

  void SetUp() override {
    open({"cuda:0", std::nullopt});
    if (IsSkipped()) return;
    page_locked_ = std::make_unique<Workspace>(Workspace::page_locked(kDevice));
    ctx().host = page_locked_.get();
  }
  void TearDown() override { close(); }

  // Set ctx().graphs to graphs() to have them.
  StepGraphs& graphs() { return graphs_; }

 private:
  std::unique_ptr<Workspace> page_locked_;
  StepGraphs graphs_;
};

}  // namespace shoal::ops::cuda
