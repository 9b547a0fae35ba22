#include "models/dual_ar/dual_ar.h"

#include <algorithm>
#include <utility>

#include "models/dual_ar/bind.h"
#include "models/dual_ar/block.h"
#include "models/dual_ar/fast_frame.h"
#include "models/dual_ar/frame_sampler.h"
#include "models/dual_ar/random_source.h"
#include "models/dual_ar/step_array.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace shoal::dual_ar {
namespace {

class CheckpointSource : public TensorSource {
 public:
  explicit CheckpointSource(const weights::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  bool contains(std::string_view name) override { return checkpoint_.contains(name); }
  TensorView get(const std::string& name, const Shape& shape) override {
    return checkpoint_.get(name, shape);
  }
  // Packed: the mapped pages would only stand beside the copy.
  void release() override { checkpoint_.release_pages(); }

 private:
  const weights::Checkpoint& checkpoint_;
};

BindOptions bind_options(const Config& config, const LoadOptions& options) {
  check_token_ids(config);
  if (options.dtype != DType::f32 && options.dtype != DType::bf16)
    fail(ErrorCode::unsupported, "dtype of a DualAR model must be F32 or BF16, got ", name_of(options.dtype));
  const bool semantic = options.head_rows == HeadRows::semantic ||
                        (options.head_rows == HeadRows::automatic && config.family == Family::s2);
  return {.dtype = options.dtype, .semantic_head = semantic};
}

// Puts the taps' own values [first, first + count) of every frame over those drawn.
void force_frames(const Taps* taps, size_t columns, size_t first, size_t count, std::span<int32_t> frames) {
  if (!taps || taps->forced_frames().empty()) return;
  const std::span<const int32_t> forced = taps->forced_frames();
  CHECK(forced.size() == frames.size(), forced.size(), " forced values for ", frames.size());
  for (size_t at = first; at < frames.size(); at += columns)
    std::copy_n(forced.begin() + static_cast<std::ptrdiff_t>(at), count,
                frames.begin() + static_cast<std::ptrdiff_t>(at));
}

// The last row of every sequence that has rows. Sequences without rows keep what stands in their row of
// `hidden`, so each run of sequences between them is one gather.
void gather_last_rows(ops::Context& ctx, const ops::RaggedRows& rows, TensorView x, TensorView hidden) {
  const Workspace::Scope scope(*ctx.workspace);
  const auto ids = step_array<int32_t>(*ctx.workspace, rows.sequences());
  for (int begin = 0, end; begin < rows.sequences(); begin = end) {
    for (end = begin; end < rows.sequences() && rows.count(end) > 0; ++end)
      ids[static_cast<size_t>(end)] = rows.offsets[static_cast<size_t>(end) + 1] - 1;
    const auto run = ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    if (!run.empty()) ops::gather_rows(ctx, x, run, hidden.slice(begin, end));
    end = std::max(end, begin + 1);
  }
}

}  // namespace

DualAr::DualAr(const Config& config, DType dtype, std::unique_ptr<const Weights> weights)
    : config_(config), dtype_(dtype), weights_(std::move(weights)) {}
DualAr::DualAr(DualAr&&) noexcept = default;
DualAr& DualAr::operator=(DualAr&&) noexcept = default;
DualAr::~DualAr() = default;

DualAr DualAr::load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                    const LoadOptions& options) {
  CheckpointSource source(checkpoint);
  return {config, options.dtype,
          std::make_unique<const Weights>(bind(source, config, ctx, bind_options(config, options)))};
}

DualAr DualAr::random(const Config& config, ops::Context& ctx, const LoadOptions& options, uint64_t seed) {
  RandomSource source(seed, *ctx.team);
  return {config, options.dtype,
          std::make_unique<const Weights>(bind(source, config, ctx, bind_options(config, options)))};
}

DualAr::Bytes DualAr::memory() const {
  const Weights& w = *weights_;
  Bytes bytes;
  bytes.embeddings = w.text_embedding.bytes() + w.codebook_embedding.bytes() + w.fast_embedding.bytes();
  for (const BlockWeights& layer : w.slow_layers) bytes.slow_layers += layer.bytes();
  bytes.head = w.norm.bytes() + w.head.bytes();
  for (const BlockWeights& layer : w.fast_layers) bytes.fast_layers += layer.bytes();
  bytes.fast_head = w.fast_norm.bytes() + w.fast_head.bytes() + w.fast_in.bytes();
  bytes.rope = w.slow_rope.bytes() + w.fast_rope.bytes();
  return bytes;
}

int64_t DualAr::bytes_per_frame() const {
  const Bytes bytes = memory();
  const int64_t in = weights_->fast_in.bytes();
  const int64_t passes = config_.num_codebooks - 1;
  return bytes.slow_layers + bytes.head + in + passes * (bytes.fast_layers + bytes.fast_head - in);
}

int64_t DualAr::head_outputs() const { return weights_->head.outputs; }

void DualAr::forward_slow(ops::Context& ctx, const ops::BatchPlan& plan, std::span<const int32_t> columns,
                          KvCache& cache, TensorView hidden_out, Taps* taps) const {
  const int64_t rows = plan.rows.rows();
  CHECK(static_cast<int64_t>(columns.size()) == rows * config_.columns(), columns.size(), " ids for ", rows,
        " rows of ", config_.columns());
  CHECK(plan.page_size == cache.page_size(), "plan ", plan.page_size, ", cache ", cache.page_size());
  CHECK(hidden_out.shape() == (Shape{plan.rows.sequences(), config_.slow.dim}), "hidden_out ",
        hidden_out.shape());
  if (rows == 0) return;
  const Workspace::Scope scope(*ctx.workspace);
  const Weights& w = *weights_;

  const TensorView x = ctx.workspace->alloc(DType::f32, {rows, config_.slow.dim});
  const ops::ColumnEmbedding embedding{.text = w.text_embedding,
                                       .codebooks = w.codebook_embedding,
                                       .codebook_size = config_.codebook_size,
                                       .num_codebooks = config_.num_codebooks,
                                       .semantic_begin = config_.semantic_begin,
                                       .semantic_end = config_.semantic_end,
                                       .scale = config_.scale_codebook_embeddings};
  ops::embed_columns(ctx, embedding, columns, x);
  if (taps) taps->record("embed", 0, x);
  for (int64_t i = 0; i < config_.slow_layers; ++i) {
    forward_block(ctx, config_.slow, w.slow_layers[static_cast<size_t>(i)], w.slow_rope, plan, cache.layer(i),
                  x);
    if (taps) taps->record("layer", i, x);
  }
  gather_last_rows(ctx, plan.rows, x, hidden_out);
}

void DualAr::slow_logits(ops::Context& ctx, TensorView hidden, TensorView logits) const {
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView normed = ctx.workspace->like(hidden);
  ops::rms_norm(ctx, hidden, weights_->norm, config_.slow.norm_eps, normed);
  ops::linear(ctx, normed, weights_->head, logits);
}

void DualAr::generate_frames(ops::Context& ctx, TensorView hidden, std::span<const FrameRequest> requests,
                             std::span<int32_t> frames, Taps* taps) const {
  const int64_t rows = hidden.dim(0);
  const auto columns = static_cast<size_t>(config_.columns());
  CHECK(static_cast<int64_t>(requests.size()) == rows, requests.size(), " requests for ", rows, " rows");
  CHECK(frames.size() == requests.size() * columns, "frames has ", frames.size(), " values");
  if (rows == 0) return;
  Workspace& workspace = *ctx.workspace;
  const Workspace::Scope scope(workspace);
  const Weights& w = *weights_;
  const FrameSampler sampler(config_, w.semantic_head);

  const TensorView normed = workspace.like(hidden);
  ops::rms_norm(ctx, hidden, w.norm, config_.slow.norm_eps, normed);
  const TensorView logits = workspace.alloc(DType::f32, {rows, w.head.outputs});
  ops::linear(ctx, normed, w.head, logits);
  if (taps) taps->record("slow_logits", 0, logits);
  sampler.draw_tokens(ctx, logits, requests, frames);
  force_frames(taps, columns, 0, 2, frames);

  FastFrame fast(ctx, config_, w, rows, taps);
  const auto codes = step_array<int32_t>(workspace, rows);
  for (int64_t k = 1; k < config_.num_codebooks; ++k) {
    const auto before = static_cast<size_t>(k);  // where the code of codebook k - 1 stands in a frame
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = frames[i * columns + before];
    const TensorView scores =
        k == 1 ? fast.first_pass(config_.norm_fast_input ? normed : hidden, codes) : fast.next_pass(codes);
    if (taps) taps->record("fast_logits", k, scores);
    sampler.draw_codes(ctx, scores, requests, k, frames);
    force_frames(taps, columns, before + 1, 1, frames);
  }
}

}  // namespace shoal::dual_ar
