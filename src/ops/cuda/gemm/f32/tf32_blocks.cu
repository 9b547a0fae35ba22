// f32 products of many rows on tensor cores: a block computes 64 rows by 64 columns, each of its four warps a
// quarter, while the next inputs are copied into shared memory.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/gemm/f32/tf32.cuh"
#include "ops/cuda/gemm/f32/tf32_pieces.cuh"
#include "ops/cuda/gemm/f32/tf32_product.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kSide = static_cast<int>(kF32BlockRows), kThreads = 128, kStages = 3;
static_assert(kSide == kF32Columns, "columns are padded to whole blocks");
using Piece = Tf32Piece<kSide, /*inputs=*/32>;
using Copier = Tf32Copier<Piece, kThreads>;
constexpr int kBytes = kStages * static_cast<int>(sizeof(Piece));

// The pieces of a sum one after the other, without segments that have no inputs.
class Pieces {
 public:
  __device__ explicit Pieces(const F32Arguments& a) : a_(a), piece_(a, 0) { skip(); }
  __device__ bool exist() const { return piece_.segment < a_.segments; }
  __device__ const PieceOfSum& now() const { return piece_; }
  // Whether the segment has ended.
  __device__ bool advance() {
    piece_.begin += Piece::kInputs;
    if (piece_.begin < piece_.end) return false;
    piece_ = PieceOfSum(a_, piece_.segment + 1);
    skip();
    return true;
  }

 private:
  __device__ void skip() {
    while (exist() && piece_.begin >= piece_.end) piece_ = PieceOfSum(a_, piece_.segment + 1);
  }

  const F32Arguments& a_;
  PieceOfSum piece_;
};

__global__ void __launch_bounds__(kThreads, 2) tf32_block_kernel(const __grid_constant__ F32Arguments a) {
  extern __shared__ float4 shared_pieces[];
  auto* const stages = reinterpret_cast<Piece*>(shared_pieces);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kSide,
                first_column = static_cast<int64_t>(blockIdx.y) * kSide;
  wait_for_inputs();
  const Copier copier(a, first_row, first_column, static_cast<int>(threadIdx.x));
  Pieces copied(a), multiplied(a);
  const auto copy_next = [&](int stage) {
    if (copied.exist()) {
      copier.copy(copied.now(), stages[stage]);
      copied.advance();
    }
    end_copy_group();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copy_next(stage);
  const int warp = static_cast<int>(threadIdx.x) / 32, row = warp / 2 * 32, column = warp % 2 * 32;
  Tf32Sums totals, sums;
  for (int stage = 0; multiplied.exist(); stage = (stage + 1) % kStages) {
    wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    copy_next((stage + kStages - 1) % kStages);
    const Piece& piece = stages[stage];
    sums.add<Piece::kInputs, Piece::kXPitch, Piece::kWeightPitch, /*kUnrolled=*/4>(&piece.x[row][0],
                                                                                   &piece.weight[0][column]);
    if (multiplied.advance()) {
      totals.add(sums);
      sums = {};
    }
  }
  totals.each_pair([&](int r, int c, float left, float right) {
    if (first_row + row + r < a.rows)
      store_two_columns(a, first_row + row + r, first_column + column + c, left, right);
  });
}

}  // namespace

void tf32_blocks(Context& ctx, const Product& product) {
  const F32Arguments arguments = f32_arguments(product);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(product.rows, kSide)),
                                 static_cast<unsigned>(arguments.columns / kSide)),
                  .threads = dim3(kThreads),
                  .shared_bytes = kBytes};
  launch(ctx, "f32 product", grid, tf32_block_kernel, arguments);
}

}  // namespace shoal::ops::cuda
