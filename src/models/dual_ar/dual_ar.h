// The DualAR text-to-codes transformer: a slow transformer over columns of (token, codes), and a fast one
// that writes the codes of a frame. MODEL.md has the maths, shapes and names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "models/dual_ar/config.h"
#include "models/dual_ar/generation.h"
#include "models/dual_ar/kv_cache.h"
#include "models/dual_ar/step_memory.h"
#include "ops/context.h"
#include "ops/residual.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::weights {
class TensorSource;
}

namespace shoal::dual_ar {

struct Weights;  // bind.h

// Which rows of the output head are kept.
enum class HeadRows : uint8_t {
  automatic,  // all for S1, semantic for S2
  all,        // the whole vocabulary
  semantic,   // only the semantic range and <|im_end|> can be sampled: 38 times less to read in S1-mini
};

struct LoadOptions {
  // Those that the device multiplies (device_state.h). Embeddings are in the operands' dtype; activations,
  // norms and sums are f32.
  Formats formats;
  // A seed gives other draws with `all` than with `semantic`: the noise of a draw is keyed by head row.
  HeadRows head_rows = HeadRows::automatic;
};

// Sees intermediate values (parity tests, inspection). All f32.
class Taps {
 public:
  virtual ~Taps() = default;
  // forward_slow:     "embed" 0, "layer" i                       [rows, slow.dim]
  // generate_frames:  "slow_logits" 0                            [rows, head rows]
  //                   "fast_in" 0 (the projected hidden state)   [rows, fast.dim]
  //                   "fast_layer" i, once per pass              [rows * positions of the pass, fast.dim]
  //                   "fast_logits" k (codebook k = 1..)         [rows, residual_codes]
  virtual void record(std::string_view name, int64_t index, TensorView value) = 0;
  // Frames to continue with instead of the sampled ones, [rows, 1 + num_codebooks]; may be empty.
  virtual std::span<const int32_t> forced_frames() const { return {}; }
};

// Immutable once made; every const function may be called from several threads, each with its own Context. In
// the steady state only the Context's workspace allocates.
class DualAr {
 public:
  struct Bytes {
    int64_t embeddings = 0, slow_layers = 0, head = 0, fast_layers = 0, fast_head = 0, rope = 0;
    int64_t total() const { return embeddings + slow_layers + head + fast_layers + fast_head + rope; }
  };

  // The names are those of MODEL.md 7 (from weights::normalise_dual_ar_names). The checkpoint is not needed
  // afterwards. Throws Error naming file, tensor, expected and found.
  static DualAr load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                     const LoadOptions& options = {});
  // Weights from wherever they come.
  static DualAr from(weights::TensorSource& source, const Config& config, ops::Context& ctx,
                     const LoadOptions& options = {});
  // The same sizes with random weights, made in seconds; for benchmarks.
  static DualAr random(const Config& config, ops::Context& ctx, const LoadOptions& options, uint64_t seed);

  // Without memory: only its sizes can be asked. The device need not exist.
  static DualAr sized(const Config& config, Device device, const LoadOptions& options);

  DualAr(DualAr&&) noexcept;
  DualAr& operator=(DualAr&&) noexcept;
  ~DualAr();

  const Config& config() const { return config_; }
  const Formats& formats() const { return formats_; }
  Bytes memory() const;
  // Weight bytes read to make one frame of one sequence (single embedding rows left out).
  int64_t bytes_per_frame() const;

  // The slow transformer over ragged columns, prompt chunks and single decode columns alike.
  // columns: [rows, 1 + num_codebooks] ids. hidden_out: f32 [sequences, slow.dim], contiguous; row s becomes
  // the hidden state (before the final norm) of the last row of sequence s, and stays as it is when the plan
  // has no rows of s. Throws Error(invalid_argument) for an id outside its table.
  void forward_slow(ops::Context& ctx, const ops::BatchPlan& plan, std::span<const int32_t> columns,
                    KvCache& cache, TensorView hidden_out, Taps* taps = nullptr) const;

  // One frame for each of the first rows of memory.hidden(): head, semantic token, fast transformer, codes.
  // Writes frames: [rows, 1 + num_codebooks]. Throws Error(invalid_argument) for logits that leave no
  // candidate. Must be called outside every scope of ctx.workspace unless there are taps.
  void generate_frames(ops::Context& ctx, const StepMemory& memory, std::span<const FrameRequest> requests,
                       std::span<int32_t> frames, Taps* taps = nullptr) const;

  // A decode step: forward_slow over one column of every sequence, then generate_frames, in one go, and
  // recorded where ctx records. The same values as the two. `memory` is always used with the same cache.
  void decode_frames(ops::Context& ctx, const StepMemory& memory, const ops::BatchPlan& plan,
                     std::span<const int32_t> columns, std::span<const FrameRequest> requests, KvCache& cache,
                     std::span<int32_t> frames) const;

  // Head logits of any hidden rows: f32 [rows, slow.dim] -> f32 [rows, head_outputs()].
  void slow_logits(ops::Context& ctx, TensorView hidden, TensorView logits) const;
  int64_t head_outputs() const;

  // What the workspace gives at its peak to decode_frames and forward_slow at the beginnings of sequences,
  // with scratch of the ops. What a CPU's attention takes more of later positions is extra.
  struct PlannedStep {
    Device device;
    int threads = 1;        // matters to a CPU
    int64_t sequences = 1;  // at most
    int64_t columns = 1;    // of forward_slow, at most
    int64_t pages = 1;      // of page tables, for each sequence
  };
  int64_t decode_workspace_bytes(const PlannedStep& step) const;
  int64_t prefill_workspace_bytes(const PlannedStep& step) const;
  // Launches of a decode step.
  int64_t launches_of_step() const;

 private:
  friend class LayerReplay;  // calibration.h

  DualAr(const Config& config, const Formats& formats, std::unique_ptr<const Weights> weights);
  void embed(ops::Context& ctx, TensorView columns, TensorView x) const;
  void run_slow(ops::Context& ctx, const ops::BatchPlan& plan, TensorView columns, const KvCache& cache,
                TensorView x, Taps* taps) const;
  // The same, with only rows `wanted` of the result, in `found`: behind the last attention only they go on.
  void run_slow_for(ops::Context& ctx, const ops::BatchPlan& plan, TensorView columns, const KvCache& cache,
                    TensorView x, TensorView wanted, TensorView found) const;
  void run_slow_layers(ops::Context& ctx, const ops::BatchPlan& plan, const KvCache& cache, int64_t count,
                       ops::Residual& stream, Taps* taps) const;
  void draw_frames(ops::Context& ctx, const StepMemory& memory, TensorView hidden, const StepArrays& arrays,
                   Taps* taps) const;
  TensorView alloc_rows(ops::Context& ctx, int64_t rows) const;
  TensorView alloc_logits(ops::Context& ctx, int64_t rows) const;

  Config config_;
  Formats formats_;
  std::unique_ptr<const Weights> weights_;
};

}  // namespace shoal::dual_ar
