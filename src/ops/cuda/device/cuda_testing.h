// Shared by the tests of the CUDA ops: a context on a GPU, and transfers of values.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <vector>

#include "ops/context.h"
#include "ops/step_graph.h"
#include "ops/stream.h"

namespace shoal::ops::cuda {

// Skips its tests where no GPU can run them. Fails a test whose kernels have failed by its end.
class CudaTest : public testing::Test {
 protected:
  static constexpr Device kDevice{DeviceKind::cuda, 0};

  CudaTest();
  ~CudaTest() override;
  void SetUp() override;
  void TearDown() override;

  // On the GPU, without graphs (set ctx().graphs to graphs() to have them).
  Context& ctx() { return ctx_; }
  StepGraphs& graphs() { return graphs_; }
  // On the CPU: packs weights and computes the expected results.
  Context& host_ctx() { return host_ctx_; }

  // On the GPU, dense; rounded to nearest even for bf16 and f16.
  static Tensor put(std::span<const float> values, Shape shape, DType dtype = DType::f32);
  static Tensor put(std::span<const int32_t> values, Shape shape);
  static Tensor put(std::span<const int64_t> values, Shape shape);
  // The values that put would make of these.
  static std::vector<float> rounded_to(std::span<const float> values, DType dtype);

  // From the GPU (any strides), row-major, after waiting for the context. Floats: of f32, bf16 or f16.
  std::vector<float> get(TensorView from);
  std::vector<int32_t> get_ints(TensorView from);  // of i32
  // The memory as it is: for comparisons bit by bit.
  std::vector<uint8_t> get_bytes(TensorView from);

 private:
  ThreadTeam team_{1};
  Workspace host_workspace_;
  Context host_ctx_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Workspace> workspace_, page_locked_;
  StepGraphs graphs_;
  Context ctx_;
};

}  // namespace shoal::ops::cuda
