// What a model's steps take of their workspace: the steps themselves, in a context that counts.
#include <algorithm>
#include <vector>

#include "base/function_ref.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/kv_cache.h"
#include "models/dual_ar/step_memory.h"
#include "ops/planning_context.h"
#include "ops/residual.h"

namespace shoal::dual_ar {
namespace {

// The most, and fewer: a GPU's sums wait only for so many rows, and a CPU divides attention of few of them.
void for_each_count(int64_t most, FunctionRef<void(int64_t count)> take) {
  if (most > ops::kMostPendingRows) take(ops::kMostPendingRows);
  for (int64_t count = most; count > 0; count /= 2) take(count);
}

int64_t page_size_of(const Config& config, const DualAr::PlannedStep& step) {
  return (config.max_positions + step.pages - 1) / step.pages;
}

std::vector<int32_t> zeros(int64_t count) { return std::vector<int32_t>(static_cast<size_t>(count)); }

// The beginnings of sequences of at most `longest` rows, as many as there may be, where the last ones have as
// many of these rows as they can.
struct Beginnings {
  Beginnings(int64_t rows, int64_t sequences, int64_t longest) {
    sequences = std::min(rows, sequences);
    std::vector<int64_t> counts(static_cast<size_t>(sequences), 1);
    int64_t left = rows - sequences;
    for (size_t s = counts.size(); s-- > 0;) {
      const int64_t more = std::min(left, longest - 1);
      counts[s] += more;
      left -= more;
    }
    for (const int64_t count : counts) {
      for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(i));
      offsets.push_back(static_cast<int32_t>(positions.size()));
    }
  }
  int64_t rows() const { return offsets.back(); }
  int64_t sequences() const { return std::ssize(offsets) - 1; }

  std::vector<int32_t> offsets = {0}, positions;
};

}  // namespace

int64_t DualAr::decode_workspace_bytes(const PlannedStep& step) const {
  ops::PlanningContext planning(step.device, step.threads);
  const StepMemory memory(planning.context(), config_, step.sequences, step.pages);
  KvCache cache = KvCache::sized(config_, 1, page_size_of(config_, step), formats_.kv, step.device);
  for_each_count(step.sequences, [&](int64_t rows) {
    const Beginnings single(rows, rows, 1);
    const std::vector<int32_t> ids = zeros(rows * config_.columns());
    std::vector<int32_t> frames = ids;
    const std::vector<int32_t> page_table = zeros(rows * step.pages);
    const ops::BatchPlan plan{.rows = {single.offsets},
                              .positions = single.positions,
                              .page_table = page_table,
                              .pages_per_sequence = step.pages,
                              .page_size = cache.page_size()};
    decode_frames(planning.context(), memory, plan, ids, std::vector<FrameRequest>(static_cast<size_t>(rows)),
                  cache, frames);
  });
  return planning.peak_bytes();
}

int64_t DualAr::prefill_workspace_bytes(const PlannedStep& step) const {
  ops::PlanningContext planning(step.device, step.threads);
  KvCache cache = KvCache::sized(config_, 1, page_size_of(config_, step), formats_.kv, step.device);
  // The last layer's sums wait by sequence, those of the layers before by row.
  const int64_t waiting = std::min(step.sequences, ops::kMostPendingRows);
  const auto prefill = [&](int64_t rows, int64_t sequences) {
    const Beginnings prompts(rows, sequences, config_.max_positions);
    const std::vector<int32_t> page_table = zeros(prompts.sequences() * step.pages);
    const Tensor hidden = Tensor::sized(DType::f32, {prompts.sequences(), config_.slow.dim}, step.device);
    forward_slow(planning.context(),
                 {.rows = {prompts.offsets},
                  .positions = prompts.positions,
                  .page_table = page_table,
                  .pages_per_sequence = step.pages,
                  .page_size = cache.page_size()},
                 zeros(prompts.rows() * config_.columns()), cache, hidden);
  };
  for_each_count(step.columns, [&](int64_t rows) {
    prefill(rows, step.sequences);
    if (waiting < step.sequences) prefill(rows, waiting);
  });
  return planning.peak_bytes();
}

int64_t DualAr::launches_of_step() const {
  constexpr int64_t kOfBlock = 7, kOfPass = 4;
  constexpr int64_t kAround = 8;  // ids to the device, embedding, head, token, the fast input, frames back
  return config_.slow_layers * kOfBlock +
         (config_.num_codebooks - 1) * (config_.fast_layers * kOfBlock + kOfPass) + kAround;
}

}  // namespace shoal::dual_ar
