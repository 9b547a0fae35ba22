#include "ops/cuda/gemm/operands/matrix_layout.cuh"

namespace shoal::ops::cuda {

bool has_even_segments(const MatrixShape& matrix) {
  return matrix.taps == 1 && matrix.depth % (kSegments * 2 * kTileInputs) == 0;
}

int64_t segments_of(const MatrixShape& matrix) {
  return (matrix.row_tiles() + matrix.segment_tiles() - 1) / matrix.segment_tiles();
}

}  // namespace shoal::ops::cuda
