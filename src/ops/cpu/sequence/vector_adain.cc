#include <cmath>
#include <cstring>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/segment_rows.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kBlockRows = 64;         // rows per set of moments: 128 channels of them fit into L1
constexpr int64_t kChannelsTogether = 64;  // that are merged together
constexpr int64_t kRowsPerTask = 64;       // of the last pass

int64_t blocks_of(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Moments of blocks of rows, which depend only on the segment's own rows, are merged in order into those of
// the segment; then all rows pass through the norm. Each step is divided among the whole team, so that one
// long utterance uses all of it.
class Adain {
 public:
  Adain(Context& ctx, TensorView x, const Segments& segments)
      : segments_(segments), x_(x), team_(*ctx.team), channels_(x.dim(1)) {
    first_block_ = ctx.workspace->array<int64_t>(segments.count() + 1).data();
    first_block_[0] = 0;
    for (int64_t s = 0; s < segments.count(); ++s)
      first_block_[s + 1] = first_block_[s] + blocks_of(segments.rows(s));
    moments_ = ctx.workspace->alloc(DType::f32, {2 * first_block_[segments.count()], channels_});
    factors_ = ctx.workspace->alloc(DType::f32, {3 * segments.count(), channels_});
  }

  void take_moments() const {
    const VectorKernels& kernels = vector_kernels();
    const int64_t grain = std::max<int64_t>(1, rows_per_task(channels_) / kBlockRows);
    team_.parallel_for(first_block_[segments_.count()], grain, [&](int64_t begin, int64_t end, int) {
      int64_t s = std::upper_bound(first_block_, first_block_ + segments_.count(), begin) - first_block_ - 1;
      for (int64_t block = begin; block < end; ++block) {
        if (block == first_block_[s + 1]) ++s;
        const int64_t row = segments_.begin(s) + (block - first_block_[s]) * kBlockRows;
        kernels.channel_moments(x_.row<float>(row), x_.stride(0), rows_of(s, block - first_block_[s]),
                                channels_, moments_.row<float>(2 * block),
                                moments_.row<float>(2 * block + 1));
      }
    });
  }

  void merge_moments(TensorView style, float eps) const {
    const int64_t groups = (channels_ + kChannelsTogether - 1) / kChannelsTogether;
    team_.parallel_for(segments_.count() * groups, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) merge(i / groups, i % groups * kChannelsTogether, style, eps);
    });
  }

  void norm(const SegmentActivation& activation, const float* inverse_alpha, TensorView y) const {
    const VectorKernels& kernels = vector_kernels();
    NormedRows rows{.x_stride = x_.stride(0),
                    .channels = channels_,
                    .alpha = inverse_alpha ? activation.snake_alpha.as<float>() : nullptr,
                    .inverse = inverse_alpha,
                    .slope = activation.slope,
                    .y_stride = y.stride(0),
                    .bf16 = y.dtype() == DType::bf16};
    const int64_t row_bytes = y.stride(0) * size_of(y.dtype());
    const auto row_of_y = [&](int64_t row) { return static_cast<char*>(y.data()) + row * row_bytes; };
    team_.parallel_for(x_.dim(0), kRowsPerTask, [&](int64_t begin, int64_t end, int) {
      NormedRows part = rows;
      for_each_piece(
          segments_, begin, end,
          [&](int64_t segment, int64_t first, int64_t last) {
            part.x = x_.row<float>(first);
            part.rows = last - first;
            part.mean = factors_.row<float>(3 * segment);
            part.scale = factors_.row<float>(3 * segment + 1);
            part.shift = factors_.row<float>(3 * segment + 2);
            part.y = row_of_y(first);
            kernels.norm_rows(part);
          },
          [&](int64_t first, int64_t last) {
            std::memset(row_of_y(first), 0, static_cast<size_t>((last - first) * row_bytes));
          });
    });
  }

 private:
  int64_t rows_of(int64_t segment, int64_t block) const {
    return std::min(kBlockRows, segments_.rows(segment) - block * kBlockRows);
  }

  // Computes the factors of channels `first` .. of one segment. In double: over 100000 rows a float would
  // lose the precision of the block moments.
  void merge(int64_t segment, int64_t first, TensorView style, float eps) const {
    const int64_t count = std::min(kChannelsTogether, channels_ - first);
    const int64_t blocks = blocks_of(segments_.rows(segment));
    const auto rows = static_cast<double>(segments_.rows(segment));
    const auto moment = [&](int64_t block, int64_t which) {
      return moments_.row<float>(2 * (first_block_[segment] + block) + which) + first;
    };
    double mean[kChannelsTogether] = {}, squares[kChannelsTogether] = {};
    for (int64_t block = 0; block < blocks; ++block) {
      const float* const means = moment(block, 0);
      const double share = static_cast<double>(rows_of(segment, block)) / rows;
      for (int64_t c = 0; c < count; ++c) mean[c] += share * means[c];
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const float *const means = moment(block, 0), *const own = moment(block, 1);
      const auto weight = static_cast<double>(rows_of(segment, block));
      for (int64_t c = 0; c < count; ++c) {
        const double away = means[c] - mean[c];
        squares[c] += own[c] + weight * (away * away);
      }
    }
    const float* const scales = style.row<float>(segment) + first;
    for (int64_t c = 0; c < count; ++c) {
      factors_.row<float>(3 * segment)[first + c] = static_cast<float>(mean[c]);
      factors_.row<float>(3 * segment + 1)[first + c] =
          static_cast<float>((1.0 + scales[c]) / std::sqrt(squares[c] / rows + eps));
      factors_.row<float>(3 * segment + 2)[first + c] = scales[channels_ + c];
    }
  }

  const Segments& segments_;
  TensorView x_;
  ThreadTeam& team_;
  int64_t channels_;
  int64_t* first_block_;  // [segments + 1]: blocks are counted through all segments
  TensorView moments_;    // [blocks, 2, channels]: mean, squares
  TensorView factors_;    // [segments, 3, channels]: mean, scale, shift
};

}  // namespace

void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  const Adain adain(ctx, x, segments);
  adain.take_moments();
  adain.merge_moments(style, eps);
  const float* inverse_alpha = nullptr;
  if (!activation.snake_alpha.empty()) {
    const TensorView inverse = ctx.workspace->like(activation.snake_alpha);
    for (int64_t c = 0; c < x.dim(1) && !is_planning(ctx); ++c)
      inverse.as<float>()[c] = 1.0f / activation.snake_alpha.as<float>()[c];
    inverse_alpha = inverse.as<float>();
  }
  adain.norm(activation, inverse_alpha, y);
}

}  // namespace shoal::ops::cpu
