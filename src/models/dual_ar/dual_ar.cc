#include "models/dual_ar/dual_ar.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/dual_ar/bind.h"
#include "models/dual_ar/block.h"
#include "models/dual_ar/fast_frame.h"
#include "ops/device_state.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/planning_context.h"
#include "ops/transfer.h"

namespace shoal::dual_ar {
namespace {

BindOptions bind_options(const ops::Context& ctx, const Config& config, const LoadOptions& options) {
  check_token_ids(config);
  const Formats& formats = options.formats;
  // Embeddings, and what speech is drawn from, are kept in the dtype of the operands, which is never 8 bits.
  if (formats.operands == DType::i8 || !ops::multiplies(ctx.device, formats.operands) ||
      !ops::multiplies(ctx.device, ops::layer_format(ctx.device, formats)))
    fail(ErrorCode::unsupported,
         "weights of a DualAR model must be F32 or BF16 (F16 on a GPU), I8 or U4 (beside 16 bits on a GPU), "
         "or F8_E4M3 beside 16 bits on a GPU, got ",
         name_of(formats.weights), " to be multiplied as ", name_of(formats.operands));
  const bool semantic = options.head_rows == HeadRows::semantic ||
                        (options.head_rows == HeadRows::automatic && config.family == Family::s2);
  return {.formats = formats, .semantic_head = semantic};
}

// The steps that StepKeys distinguish.
enum RecordedStep : int64_t { kDecodeStep, kFramesStep };

// Replaces the sampled values by the taps' own values [first, first + count) of every frame.
void force_frames(ops::Context& ctx, const Taps* taps, int64_t first, int64_t count, TensorView frames) {
  if (!taps || taps->forced_frames().empty()) return;
  const std::span<const int32_t> forced = taps->forced_frames();
  CHECK(static_cast<int64_t>(forced.size()) == frames.elements(), forced.size(), " forced values for ",
        frames.elements());
  const Tensor changed = ops::to_host(ctx, frames);
  for (int64_t row = 0; row < frames.dim(0); ++row)
    std::copy_n(forced.begin() + row * frames.dim(1) + first, count,
                changed.view().row<int32_t>(row) + first);
  copy(changed, frames);
}

// The last row of every sequence that has rows.
std::vector<int32_t> last_rows(const ops::RaggedRows& rows) {
  std::vector<int32_t> ids;
  for (int sequence = 0; sequence < rows.sequences(); ++sequence)
    if (rows.count(sequence) > 0) ids.push_back(rows.offsets[static_cast<size_t>(sequence) + 1] - 1);
  return ids;
}

// from: a row for every sequence that has rows. The others keep their row of `hidden`, so each run of
// sequences with rows is one gather.
void spread_rows(ops::Context& ctx, const ops::RaggedRows& rows, TensorView from, TensorView hidden) {
  std::vector<int32_t> ids(static_cast<size_t>(from.dim(0)));
  std::iota(ids.begin(), ids.end(), 0);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView all = ops::upload(ctx, std::span<const int32_t>(ids));
  int64_t next = 0;
  for (int begin = 0, end; begin < rows.sequences(); begin = std::max(end, begin + 1)) {
    for (end = begin; end < rows.sequences() && rows.count(end) > 0;) ++end;
    const int64_t count = end - begin;
    if (count > 0) ops::gather_rows(ctx, from, all.slice(next, next + count), hidden.slice(begin, end));
    next += count;
  }
}

void check_drawn(std::span<const int32_t> frames) {
  if (std::any_of(frames.begin(), frames.end(), [](int32_t value) { return value < 0; }))
    fail(ErrorCode::invalid_argument, "logits are not numbers or leave nothing to draw");
}

}  // namespace

DualAr::DualAr(const Config& config, const Formats& formats, std::unique_ptr<const Weights> weights)
    : config_(config), formats_(formats), weights_(std::move(weights)) {}
DualAr::DualAr(DualAr&&) noexcept = default;
DualAr& DualAr::operator=(DualAr&&) noexcept = default;
DualAr::~DualAr() = default;

DualAr DualAr::from(weights::TensorSource& source, const Config& config, ops::Context& ctx,
                    const LoadOptions& options) {
  return {config, options.formats,
          std::make_unique<const Weights>(bind(source, config, ctx, bind_options(ctx, config, options)))};
}

DualAr DualAr::load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                    const LoadOptions& options) {
  return from(*weights::read_weights(checkpoint, *ctx.team), config, ctx, options);
}

DualAr DualAr::random(const Config& config, ops::Context& ctx, const LoadOptions& options, uint64_t seed) {
  return from(*random_weights(seed, *ctx.team), config, ctx, options);
}

DualAr DualAr::sized(const Config& config, Device device, const LoadOptions& options) {
  weights::NamesOnly names;
  ops::PlanningContext planning(device);
  return from(names, config, planning.context(), options);
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

int64_t DualAr::head_outputs() const { return weights_->head.outputs(); }

TensorView DualAr::alloc_rows(ops::Context& ctx, int64_t rows) const {
  return ctx.workspace->alloc(DType::f32, {rows, config_.slow.dim});
}

TensorView DualAr::alloc_logits(ops::Context& ctx, int64_t rows) const {
  return ctx.workspace->alloc(DType::f32, {rows, head_outputs()});
}

void DualAr::forward_slow(ops::Context& ctx, const ops::BatchPlan& plan, std::span<const int32_t> columns,
                          KvCache& cache, TensorView hidden_out, Taps* taps) const {
  const int64_t rows = plan.rows.rows();
  CHECK(static_cast<int64_t>(columns.size()) == rows * config_.columns(), columns.size(), " ids for ", rows,
        " rows of ", config_.columns());
  CHECK(hidden_out.shape() == (Shape{plan.rows.sequences(), config_.slow.dim}), "hidden_out ",
        hidden_out.shape());
  if (rows == 0) return;
  check_columns(config_, columns);
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView x = alloc_rows(ctx, rows);
  const ops::BatchPlan on_device = ops::on_device(ctx, plan);
  const TensorView ids = ops::upload(ctx, columns).reshape({rows, config_.columns()});
  const std::vector<int32_t> last = last_rows(plan.rows);
  const TensorView wanted = ops::upload(ctx, std::span<const int32_t>(last));
  const bool every_sequence = wanted.dim(0) == plan.rows.sequences();
  const TensorView found = every_sequence ? hidden_out : alloc_rows(ctx, wanted.dim(0));
  if (taps) {
    run_slow(ctx, on_device, ids, cache, x, taps);
    ops::gather_rows(ctx, x, wanted, found);
  } else {
    run_slow_for(ctx, on_device, ids, cache, x, wanted, found);
  }
  if (!every_sequence) spread_rows(ctx, plan.rows, found, hidden_out);
}

void DualAr::embed(ops::Context& ctx, TensorView columns, TensorView x) const {
  const ops::ColumnEmbedding embedding{.text = weights_->text_embedding,
                                       .codebooks = weights_->codebook_embedding,
                                       .codebook_size = config_.codebook_size,
                                       .num_codebooks = config_.num_codebooks,
                                       .semantic_begin = config_.semantic_begin,
                                       .semantic_end = config_.semantic_end,
                                       .scale = config_.scale_codebook_embeddings};
  ops::embed_columns(ctx, embedding, columns, x);
}

void DualAr::run_slow(ops::Context& ctx, const ops::BatchPlan& plan, TensorView columns, const KvCache& cache,
                      TensorView x, Taps* taps) const {
  embed(ctx, columns, x);
  if (taps) taps->record("embed", 0, ops::to_host(ctx, x));
  const Workspace::Scope scope(*ctx.workspace);
  ops::Residual stream(ctx, x, formats_.operands);
  run_slow_layers(ctx, plan, cache, config_.slow_layers, stream, taps);
  ops::settled(ctx, stream);
}

void DualAr::run_slow_for(ops::Context& ctx, const ops::BatchPlan& plan, TensorView columns,
                          const KvCache& cache, TensorView x, TensorView wanted, TensorView found) const {
  embed(ctx, columns, x);
  const Workspace::Scope scope(*ctx.workspace);
  ops::Residual stream(ctx, x, formats_.operands);
  const int64_t layers = config_.slow_layers - 1;
  run_slow_layers(ctx, plan, cache, layers, stream, nullptr);
  ops::Residual last(ctx, found, formats_.operands);
  forward_wanted_rows(ctx, config_.slow, weights_->slow_layers.back(), weights_->slow_rope, plan,
                      cache.layer(layers), stream, wanted, last);
  ops::settled(ctx, last);
}

void DualAr::run_slow_layers(ops::Context& ctx, const ops::BatchPlan& plan, const KvCache& cache,
                             int64_t count, ops::Residual& stream, Taps* taps) const {
  CHECK(plan.page_size == cache.page_size(), "plan ", plan.page_size, ", cache ", cache.page_size());
  for (int64_t i = 0; i < count; ++i) {
    forward_block(ctx, config_.slow, weights_->slow_layers[static_cast<size_t>(i)], weights_->slow_rope, plan,
                  cache.layer(i), stream);
    if (taps) taps->record("layer", i, ops::to_host(ctx, ops::settled(ctx, stream)));
  }
}

void DualAr::slow_logits(ops::Context& ctx, TensorView hidden, TensorView logits) const {
  const ops::RmsNorm norm{weights_->norm, config_.slow.norm_eps};
  int64_t first = 0;
  for (const ops::PackedMatrix* part : weights_->head.parts()) {
    if (part->outputs == 0) continue;
    ops::norm_linear(ctx, hidden, norm, *part, logits.columns(first, first + part->outputs));
    first += part->outputs;
  }
}

void DualAr::generate_frames(ops::Context& ctx, const StepMemory& memory,
                             std::span<const FrameRequest> requests, std::span<int32_t> frames,
                             Taps* taps) const {
  const auto rows = static_cast<int64_t>(requests.size());
  CHECK(frames.size() == requests.size() * static_cast<size_t>(config_.columns()), "frames has ",
        frames.size(), " values");
  if (rows == 0) return;
  const StepArrays arrays = memory.arrays(taps ? rows : memory.padded_rows(ctx, rows));
  memory.write(arrays, requests);
  const TensorView hidden = memory.hidden().slice(0, static_cast<int64_t>(arrays.draws.size()));
  const auto body = [&] {
    memory.block_.copy_to_device(ctx, arrays.bytes);
    draw_frames(ctx, memory, hidden, arrays, taps);
    memory.block_.copy_to_host(ctx, arrays.frames_bytes);
  };
  if (taps)
    body();
  else
    ops::run_step(ctx, {this, kFramesStep, hidden.dim(0), memory.serial_}, body);
  ops::synchronize(ctx);
  std::copy_n(arrays.frames.begin(), frames.size(), frames.begin());
  check_drawn(frames);
}

void DualAr::decode_frames(ops::Context& ctx, const StepMemory& memory, const ops::BatchPlan& plan,
                           std::span<const int32_t> columns, std::span<const FrameRequest> requests,
                           KvCache& cache, std::span<int32_t> frames) const {
  const auto count = static_cast<int64_t>(requests.size());
  CHECK(plan.rows.sequences() == count && plan.rows.rows() == count, "a decode step of ", count,
        " sequences has ", plan.rows.rows(), " rows");
  CHECK(columns.size() == frames.size() &&
            frames.size() == requests.size() * static_cast<size_t>(config_.columns()),
        columns.size(), " ids and ", frames.size(), " values of frames for ", count, " rows");
  CHECK(plan.pages_per_sequence <= memory.pages_per_sequence(), plan.pages_per_sequence,
        " pages, memory for ", memory.pages_per_sequence());
  if (count == 0) return;
  check_columns(config_, columns);
  const int64_t rows = memory.padded_rows(ctx, count);
  const StepArrays arrays = memory.arrays(rows);
  memory.write(arrays, requests);
  memory.write(arrays, plan, columns);
  const ops::BatchPlan step{.rows = {memory.counting_.first(rows + 1)},
                            .positions = arrays.positions,
                            .page_table = arrays.page_table,
                            .pages_per_sequence = memory.pages_per_sequence(),
                            .page_size = plan.page_size,
                            .tables = arrays.tables};
  ops::run_step(ctx, {this, kDecodeStep, rows, memory.serial_}, [&] {
    memory.block_.copy_to_device(ctx, arrays.bytes);
    const Workspace::Scope scope(*ctx.workspace);
    const TensorView x = alloc_rows(ctx, rows);
    run_slow(ctx, step, arrays.device_columns, cache, x, nullptr);
    draw_frames(ctx, memory, x, arrays, nullptr);
    memory.block_.copy_to_host(ctx, arrays.frames_bytes);
  });
  ops::synchronize(ctx);
  std::copy_n(arrays.frames.begin(), frames.size(), frames.begin());
  check_drawn(frames);
}

void DualAr::draw_frames(ops::Context& ctx, const StepMemory& memory, TensorView hidden,
                         const StepArrays& arrays, Taps* taps) const {
  const Workspace::Scope scope(*ctx.workspace);
  const Weights& w = *weights_;
  const int64_t rows = hidden.dim(0);
  const TensorView frames = arrays.device_frames;
  const ops::TokenHead head{.semantic_begin = config_.semantic_begin,
                            .semantic_end = config_.semantic_end,
                            .im_end = config_.im_end,
                            .semantic = w.head.semantic,
                            .codebook_size = static_cast<int32_t>(config_.codebook_size)};

  const TensorView logits = alloc_logits(ctx, rows);
  slow_logits(ctx, hidden, logits);
  if (taps) taps->record("slow_logits", 0, ops::to_host(ctx, logits));
  ops::draw_tokens(ctx, logits, arrays.draw_table, head, frames);
  force_frames(ctx, taps, 0, 2, frames);

  TensorView slow = hidden;
  if (config_.norm_fast_input) {
    slow = alloc_rows(ctx, rows);
    ops::rms_norm(ctx, hidden, w.norm, config_.slow.norm_eps, slow);
  }
  FastFrame fast(ctx, config_, w, memory, rows, taps);
  for (int64_t k = 1; k < config_.num_codebooks; ++k) {
    const TensorView before = frames.columns(k, k + 1);  // the codes of codebook k - 1
    const TensorView scores = k == 1 ? fast.first_pass(slow, before) : fast.next_pass(before);
    if (taps) taps->record("fast_logits", k, ops::to_host(ctx, scores));
    ops::draw_codes(ctx, scores, arrays.draw_table, k, frames);
    force_frames(ctx, taps, k + 1, 1, frames);
  }
}

}  // namespace shoal::dual_ar
