#include <algorithm>
#include <cmath>

#include "ops/cuda/gemm/operands/remembered.h"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/wide_choice.h"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kMostStages = 8;
constexpr int kMostCopyTiles = 4;  // a side of a rectangle of a map has at most 256 elements

// The time of a shape on an H200, in microseconds: least squares of the relative errors over 478 measured
// products (ops_cuda_conv_bench wide), weighted towards those near the fastest. Convolutions among them
// copied their rows 16 bytes at a time. The shapes for large matrices were set by hand: so that they are
// taken where they were measured to be fastest, but 128 x 160, which lies between its neighbours (of 1,000
// rows of S2-Pro's w1 and w3 it takes 159 us, they 161 and 163). Those of 128 x 144 are
// between its neighbours', not measured.
struct WideTimes {
  double start;    // until the first stage is there
  double tile;     // of 32 inputs of a result
  double result;   // to store one
  double segment;  // to add up one of a split result
};
constexpr std::array<WideTimes, kWideShapes.size()> kTimes = {{
    {0.0, 0.295, 5.0, 0},
    {0.0, 0.227, 3.4, 0},
    {0.9, 0.185, 3.0, 0},
    {1.7, 0.128, 2.7, 0},
    {3.1, 0.104, 0.7, 0},
    {2.9, 0.140, 0.3, 0},
    {3.2, 0.174, 1.0, 0.97},
    {3.2, 0.150, 0.0, 1.87},
    {3.3, 0.142, 0.3, 0.81},
    {3.9, 0.081, 0.8, 0},
    {3.0, 0.2, 1.0, 0},
    {0, 0, 0, 0},  // never chosen
    {3.0, 0.1, 0.9, 0},
    {0.0, 0.26, 4.3, 0},
    {0, 0, 0, 0},  // never chosen
    {0.0, 0.245, 3.9, 0},
    {0, 0, 0, 0},  // never chosen
}};

// Blocks of few outputs of a large matrix are slow where those that share weights have not the same number of
// rows (2,560 x 9,728, 200 rows, an H100: 64 x 64 results a block 76 us, 128 x 64 53, 128 x 96 43; 256 rows:
// 45, 42, 43), and of 64 rows where 128 would do.
bool is_slow(const WideShape& shape, const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  constexpr int64_t kFewRows = 128, kFewOutputs = 64;
  if (rows <= kFewRows || shape.outputs > kFewOutputs || !is_large(matrix, machine)) return false;
  return rows % shape.rows() != 0 || (shape.row_groups == 1 && rows % 128 == 0);
}

// The part of all multiprocessors that clusters of eight can fill.
constexpr double kClustered = 120.0 / 132;

int64_t blocks_of(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

const WideShape& shape_of(const WideChoice& choice) { return kWideShapes[static_cast<size_t>(choice.shape)]; }

// How many blocks a multiprocessor executes, one after the other or in an equivalent time.
double blocks_of_one(const WideShape& shape, double blocks, int multiprocessors) {
  const double share = blocks / multiprocessors;
  if (shape.blocks == 1) return std::ceil(share);
  // If several blocks share a multiprocessor, the blocks of the last round have it to themselves; clusters
  // need room for all of their blocks at once.
  const double rounds = shape.split ? std::ceil(share / (shape.blocks * kClustered)) : 1;
  return rounds > 1 ? rounds * shape.blocks : std::max(1.0, share);
}

// Tiles of 32 inputs per stage: a divisor of a segment's tiles if possible, and four if such large stages can
// still be pipelined: a stage costs 0.2 microseconds at any size (H200). Of a large matrix all of a segment:
// a layer of S2-Pro of 64 rows, by which only qkv changes, 78.0 -> 76.3 us.
int stage_tiles_of(const MatrixShape& matrix, int64_t room_tiles, const WideShape& shape) {
  const int64_t segment_tiles = matrix.segment_tiles();
  if (shape.large && has_even_segments(matrix) && room_tiles >= 3 * segment_tiles)
    return static_cast<int>(segment_tiles);
  if (segment_tiles % 4 == 0 && room_tiles >= 3 * 4) return 4;
  if (segment_tiles % 2 == 0) return 2;
  return segment_tiles % 3 == 0 ? 3 : static_cast<int>(std::min<int64_t>(segment_tiles, 2));
}

WideChoice fastest_of_all(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  WideChoice best;
  double best_us = 1e300;
  for (int shape = 0; shape < static_cast<int>(kWideShapes.size()); ++shape) {
    for (const int cluster : {1, 2, 4, 8}) {
      const WideChoice choice{shape, cluster};
      if (!can_do(choice, matrix, machine)) continue;
      if (is_slow(shape_of(choice), matrix, rows, machine)) continue;
      const double us = expected_us(choice, matrix, rows, machine);
      if (us < best_us) best = choice, best_us = us;
    }
  }
  return best;
}

}  // namespace

WidePlan wide_plan(const WideChoice& choice, const MatrixShape& matrix, const Machine& machine) {
  const WideShape& shape = shape_of(choice);
  WidePlan plan;
  plan.local_segments = static_cast<int>(blocks_of(segments_of(matrix), choice.cluster));
  const int64_t sums =
      shape.split        ? int64_t{4} * plan.local_segments * shape.rows() * (shape.outputs + kWideSumPadding)
      : shape.by_segment ? 0  // they are stored from registers
                         : int64_t{4} * shape.rows() * (kWideChunk + kWideSumPadding);
  const int64_t barriers = 16 * kMostStages;
  // A block needs 1 KiB beyond its request.
  const int64_t room = (machine.shared_bytes + 1024) / shape.blocks - 1024 - sums - barriers;
  const int64_t tile = int64_t{64} * (shape.rows() + shape.outputs);
  plan.stage_tiles = stage_tiles_of(matrix, room / tile, shape);
  plan.copy_tiles = plan.stage_tiles > kMostCopyTiles ? 2 : plan.stage_tiles;
  const int64_t stage = tile * plan.stage_tiles;
  int64_t most = kMostStages;
  if (shape.split)
    most = std::clamp(plan.local_segments * blocks_of(matrix.segment_tiles(), plan.stage_tiles), int64_t{2},
                      most);
  const int64_t stages = std::min(most, std::max<int64_t>(0, room) / stage);
  if (stages < 2) return plan;
  plan.stages = static_cast<int>(stages);
  plan.sums_offset = static_cast<int>(stages * stage);
  plan.barriers_offset = static_cast<int>(plan.sums_offset + sums);
  plan.bytes = static_cast<int>(plan.barriers_offset + barriers);
  return plan;
}

bool is_large(const MatrixShape& matrix, const Machine& machine) {
  constexpr int64_t kOfMultiprocessor = 96 << 10;
  return matrix.taps == 1 && matrix.bytes() > machine.multiprocessors * kOfMultiprocessor;
}

bool can_do(const WideChoice& choice, const MatrixShape& matrix, const Machine& machine) {
  const bool is_cluster = choice.cluster == 2 || choice.cluster == 4 || choice.cluster == 8;
  if (shape_of(choice).by_segment || (shape_of(choice).large && !is_large(matrix, machine))) return false;
  if (shape_of(choice).split ? !is_cluster || segments_of(matrix) < 2 : choice.cluster != 1) return false;
  return wide_plan(choice, matrix, machine).stages > 0;
}

double expected_us(const WideChoice& choice, const MatrixShape& matrix, int64_t rows,
                   const Machine& machine) {
  const WideShape& shape = shape_of(choice);
  const WidePlan plan = wide_plan(choice, matrix, machine);
  const int64_t results =
      blocks_of(rows, shape.rows()) * blocks_of(matrix.tile_rows() * kTileOutputs, shape.outputs);
  const int64_t blocks = results * choice.cluster;
  const int64_t tiles = shape.split ? plan.local_segments * matrix.segment_tiles() : matrix.row_tiles();
  const double of_one = blocks_of_one(shape, static_cast<double>(blocks), machine.multiprocessors);
  const WideTimes& times = kTimes[static_cast<size_t>(choice.shape)];
  const double segments = shape.split ? plan.local_segments : 0;
  return times.start +
         of_one * (times.tile * static_cast<double>(tiles) + times.result + times.segment * segments);
}

WideChoice choose_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  static thread_local Remembered<WideChoice> remembered;
  return remembered.of({matrix, rows, machine}, [&] { return fastest_of_all(matrix, rows, machine); });
}

std::optional<int> segments_shape(const MatrixShape& matrix, int64_t rows, const Machine& machine) {
  if (!machine.wgmma || matrix.paired || matrix.outputs % kTileOutputs != 0 || !has_even_segments(matrix))
    return std::nullopt;
  if (is_large(matrix, machine)) {
    if (rows < kFewestPendingRows || rows > kMostPartialRows) return std::nullopt;
    return rows <= 64 ? kSegmentsShape : kTallSegmentsShape;
  }
  if (rows <= kMostPartialRows || rows > kMostPendingRows) return std::nullopt;
  const WideShape& shape = kWideShapes[kSmallSegmentsShape];
  const int64_t blocks = blocks_of(rows, shape.rows()) * blocks_of(matrix.outputs, shape.outputs) * kSegments;
  if (blocks > machine.multiprocessors) return std::nullopt;
  return kSmallSegmentsShape;
}

}  // namespace shoal::ops::cuda
