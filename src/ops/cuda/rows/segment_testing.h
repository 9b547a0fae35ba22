// Shared by the tests of the ops over segments on a GPU.
#pragma once

#include <memory>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::cuda {

class SegmentTest : public CudaTest {
 protected:
  // The same segments with their tables on the GPU, until the test ends.
  Segments placed(Segments segments) {
    std::vector<int32_t> tables(segments.starts.begin(), segments.starts.end());
    tables.insert(tables.end(), segments.frames.begin(), segments.frames.end());
    if (tables.empty()) return segments;
    tables_.push_back(put(tables, {2, segments.count()}));
    segments.tables = tables_.back();
    return segments;
  }

  // Everything that the workspace gives from now on has been overwritten with NaN.
  void poison(int64_t floats = int64_t{4} << 20) {
    const Workspace::Scope scope(*ctx().workspace);
    const std::vector<float> garbage(static_cast<size_t>(floats), kNan);
    copy(TensorView::of(garbage.data(), DType::f32, {floats}), ctx().workspace->alloc(DType::f32, {floats}));
  }

  // Full of NaN.
  static Tensor garbage(Shape shape, DType dtype = DType::f32) {
    return put(std::vector<float>(static_cast<size_t>(shape.elements()), kNan), shape, dtype);
  }

 private:
  std::vector<Tensor> tables_;
};

}  // namespace shoal::ops::cuda
