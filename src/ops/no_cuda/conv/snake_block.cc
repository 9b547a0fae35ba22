#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

bool has_snake_block(const Context&, std::span<const SnakeUnit>) { unavailable("snake_block"); }
void snake_block(Context&, TensorView, const Segments&, std::span<const SnakeUnit>, float, TensorView) {
  unavailable("snake_block");
}

}  // namespace shoal::ops::cuda
