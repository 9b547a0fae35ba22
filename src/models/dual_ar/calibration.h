// What the layers' matrices read while the model speaks: for choosing the integers of quantised weights.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/dual_ar/block.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/generation.h"
#include "models/dual_ar/kv_cache.h"
#include "ops/context.h"

namespace shoal::dual_ar {

// A prompt and the frames that the model went on with.
struct SpokenColumns {
  std::vector<int32_t> columns;  // [positions, 1 + num_codebooks]
  int64_t prompt = 0;            // positions of it
};

// prompts: [columns, 1 + num_codebooks] each. Speaks at most `frames` frames of each, fewer where it ends;
// prompt i is drawn with sampling.seed + i. Some are spoken together, with keys and values in f32. Calls
// `done` with how many are, after every few. Throws Error as the model does, and too_large for a prompt that
// leaves no room.
std::vector<SpokenColumns> speak_prompts(ops::Context& ctx, const DualAr& model,
                                         std::span<const std::vector<int32_t>> prompts, int64_t frames,
                                         const Sampling& sampling,
                                         const std::function<void(size_t spoken)>& done);

// Runs the layers over such columns one by one, the slow ones, then the fast ones, so that what is known of
// their inputs is wanted of one layer at a time. Keeps the residual stream of every position and of every
// position of a frame: f32 [positions, dim]. On a CPU. The model must outlive it.
class LayerReplay {
 public:
  LayerReplay(ops::Context& ctx, const DualAr& model, std::vector<SpokenColumns> spoken);

  // Runs the next layer. The observer sees what its products read, in pieces.
  void run_layer(ops::Context& ctx, BlockObserver& observer);
  int64_t layers_run() const { return next_; }

 private:
  void embed(ops::Context& ctx);
  void run_slow(ops::Context& ctx, const BlockWeights& weights, BlockObserver& observer);
  void begin_fast(ops::Context& ctx);
  void run_fast(ops::Context& ctx, const BlockWeights& weights, BlockObserver& observer);

  const DualAr& model_;
  const std::vector<SpokenColumns> spoken_;
  int64_t next_ = 0;
  int64_t longest_ = 1;
  Tensor slow_, fast_;  // f32: [positions, slow.dim]; [frames * num_codebooks, fast.dim]
};

}  // namespace shoal::dual_ar
