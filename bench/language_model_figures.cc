#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "bench/model_figures.h"
#include "bench/timing.h"
#include "ops/device_state.h"
#include "ops/embedding.h"
#include "ops/transfer.h"

namespace shoal::bench {
namespace {

constexpr int64_t kPageSize = ModelBenchOptions::kPageSize;
// The first step grows the workspace, the second is recorded, the third is the first replay.
constexpr int kWarmUp = 4;

constexpr int64_t pages_for(int64_t columns) { return (columns + kPageSize - 1) / kPageSize; }

// Columns of a plausible prompt: semantic tokens with codes.
std::vector<int32_t> random_columns(const dual_ar::Config& config, int64_t columns, uint64_t seed) {
  std::vector<int32_t> values;
  for (int64_t column = 0; column < columns; ++column) {
    const auto draw = [&](int64_t i) {
      return philox4x32(seed, {static_cast<uint32_t>(column), static_cast<uint32_t>(i), 0, 0})[0];
    };
    const int32_t first = static_cast<int32_t>(draw(0) % static_cast<uint32_t>(config.codebook_size));
    values.push_back(config.semantic_begin + first);
    values.push_back(first);
    for (int64_t k = 1; k < config.num_codebooks; ++k) {
      values.push_back(static_cast<int32_t>(draw(k) % static_cast<uint32_t>(config.residual_codes())));
    }
  }
  return values;
}

std::vector<int32_t> counted(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// A batch of equal sequences after the same prompt. Each owns the pages of its frames and, unless the prompt
// is shared, those of its prompt.
class DecodeBatch {
 public:
  DecodeBatch(ops::Context& ctx, const dual_ar::DualAr& model, const ModelBenchOptions& options, int batch)
      : model_(model),
        batch_(batch),
        context_(options.context_columns),
        shared_pages_(options.shared_context ? context_ / kPageSize : 0),
        own_pages_(pages_for(context_ + kWarmUp + options.decode_frames) - shared_pages_),
        cache_(model.config(), shared_pages_ + batch * own_pages_, kPageSize, options.formats.kv, ctx.device),
        memory_(ctx, model.config(), batch, pages_for(model.config().max_positions)),  // as the engine has it
        columns_(static_cast<size_t>(batch * model.config().columns())),
        frames_(columns_.size()) {
    dual_ar::Sampling sampling;
    sampling.quirks.semantic_only = options.semantic_head;
    for (int sequence = 0; sequence < batch; ++sequence) {
      sampling.seed = options.seed + static_cast<uint64_t>(sequence);
      utterances_.emplace_back(model.config(), sampling, context_, kWarmUp + options.decode_frames + 1);
      for (int64_t page = 0; page < shared_pages_; ++page) page_table_.push_back(static_cast<int32_t>(page));
      for (int64_t page = 0; page < own_pages_; ++page)
        page_table_.push_back(static_cast<int32_t>(shared_pages_ + sequence * own_pages_ + page));
    }
    prefill(ctx, options);
  }

  // Every sequence's last column through the slow transformer, then its next frame.
  void step(ops::Context& ctx) {
    std::swap(columns_, frames_);
    std::vector<int32_t> positions;
    for (size_t sequence = 0; sequence < utterances_.size(); ++sequence) {
      accept(sequence);
      positions.push_back(static_cast<int32_t>(utterances_[sequence].next_position()));
    }
    model_.decode_frames(ctx, memory_, plan(counted(batch_ + 1), positions), columns_, requests(), cache_,
                         frames_);
  }

  // Keys and values that a step reads at least once, in the middle of the timed steps.
  int64_t kv_columns(int timed) const {
    const int64_t spoken = kWarmUp + timed / 2;
    return shared_pages_ > 0 ? context_ + batch_ * spoken : batch_ * (context_ + spoken);
  }

 private:
  void prefill(ops::Context& ctx, const ModelBenchOptions& options) {
    const std::vector<int32_t> columns = random_columns(model_.config(), context_, options.seed);
    std::vector<int32_t> offsets(static_cast<size_t>(batch_) + 1, static_cast<int32_t>(context_));
    offsets[0] = 0;
    const TensorView hidden = memory_.hidden();
    model_.forward_slow(ctx, plan(offsets, counted(context_)), columns, cache_, hidden);
    if (batch_ > 1) {
      const Workspace::Scope scope(*ctx.workspace);
      const std::vector<int32_t> first(static_cast<size_t>(batch_) - 1, 0);
      ops::gather_rows(ctx, hidden.slice(0, 1), ops::upload(ctx, std::span<const int32_t>(first)),
                       hidden.slice(1, batch_));
    }
    for (int64_t page = 0; page < pages_for(context_) - shared_pages_; ++page)
      for (int sequence = 1; sequence < batch_; ++sequence)
        cache_.copy_page(ctx, page, sequence * own_pages_ + page);
    model_.generate_frames(ctx, memory_, requests(), frames_);
  }

  void accept(size_t sequence) {
    const auto width = static_cast<size_t>(model_.config().columns());
    // Random weights may draw the end token: a timed sequence goes on with a semantic token instead.
    int32_t& token = columns_[sequence * width];
    if (token == model_.config().im_end) token = model_.config().semantic_begin;
    utterances_[sequence].accept(std::span(columns_).subspan(sequence * width, width));
  }

  std::vector<dual_ar::FrameRequest> requests() const {
    std::vector<dual_ar::FrameRequest> requests;
    for (const dual_ar::Utterance& utterance : utterances_) requests.push_back(utterance.next_request());
    return requests;
  }

  ops::BatchPlan plan(std::span<const int32_t> offsets, std::span<const int32_t> positions) const {
    return {.rows = {offsets},
            .positions = positions,
            .page_table = page_table_,
            .pages_per_sequence = shared_pages_ + own_pages_,
            .page_size = kPageSize};
  }

  const dual_ar::DualAr& model_;
  int batch_;
  int64_t context_, shared_pages_, own_pages_;
  dual_ar::KvCache cache_;
  dual_ar::StepMemory memory_;
  std::vector<int32_t> columns_, frames_, page_table_;
  std::vector<dual_ar::Utterance> utterances_;
};

// One prompt with pages of its own.
class Prompt {
 public:
  Prompt(ops::Context& ctx, const dual_ar::DualAr& model, const ModelBenchOptions& options, int columns)
      : model_(model),
        cache_(model.config(), pages_for(columns), kPageSize, options.formats.kv, ctx.device),
        memory_(ctx, model.config(), 1, pages_for(model.config().max_positions)),
        columns_(random_columns(model.config(), columns, options.seed)),
        offsets_({0, columns}),
        positions_(counted(columns)),
        page_table_(counted(pages_for(columns))),
        frame_(static_cast<size_t>(model.config().columns())) {}

  void prefill(ops::Context& ctx) {
    const ops::BatchPlan plan{.rows = {offsets_},
                              .positions = positions_,
                              .page_table = page_table_,
                              .pages_per_sequence = static_cast<int64_t>(page_table_.size()),
                              .page_size = kPageSize};
    model_.forward_slow(ctx, plan, columns_, cache_, memory_.hidden());
  }
  // Returns when the frame is on the host.
  void first_frame(ops::Context& ctx) {
    const dual_ar::FrameRequest request{.seed = 1};
    prefill(ctx);
    model_.generate_frames(ctx, memory_, {&request, 1}, frame_);
  }

 private:
  const dual_ar::DualAr& model_;
  dual_ar::KvCache cache_;
  dual_ar::StepMemory memory_;
  std::vector<int32_t> columns_, offsets_, positions_, page_table_, frame_;
};

}  // namespace

std::vector<DecodeFigures> bench_decode(const dual_ar::DualAr& model, const MachineLimits& limits,
                                        const ModelBenchOptions& options, ops::Context& ctx) {
  const auto free_before = ops::free_device_memory(ctx.device);
  std::vector<DecodeFigures> figures;
  for (const int batch : options.batches) {
    options.on_part(concat("decode, batch ", batch));
    const RecordingsOfPart recordings(ctx);
    DecodeBatch sequences(ctx, model, options, batch);
    const double step_s = median_seconds(kWarmUp, options.decode_frames, [&] { sequences.step(ctx); });
    const double kv_bytes =
        static_cast<double>(dual_ar::KvCache::bytes_per_token(model.config(), options.formats.kv)) *
        static_cast<double>(sequences.kv_columns(options.decode_frames));
    const double gb = (static_cast<double>(model.bytes_per_frame()) + kv_bytes) / 1e9;
    const auto free_now = ops::free_device_memory(ctx.device);
    figures.push_back({.batch = batch,
                       .step_ms = step_s * 1e3,
                       .frames_per_s = batch / step_s,
                       .gb_read = gb,
                       .share_of_read_limit = share_of(gb / step_s, limits.read_gb_per_s),
                       .device_bytes = free_now ? *free_before - *free_now : 0});
  }
  return figures;
}

PrefillFigures bench_prefill(const dual_ar::DualAr& model, const MachineLimits& limits,
                             const ModelBenchOptions& options, ops::Context& ctx) {
  options.on_part("prefill");
  const dual_ar::Config& config = model.config();
  const RecordingsOfPart recordings(ctx);
  Prompt prompt(ctx, model, options, options.prefill_columns);
  const double best_s = best_seconds(options.prompt_repeats, [&] {
    prompt.prefill(ctx);
    ops::synchronize(ctx);
  });
  // Behind the last layer's attention only a prompt's last column goes on.
  const dual_ar::BlockConfig& block = config.slow;
  const int64_t qkv = block.dim * block.qkv_width();
  const int64_t behind_attention = block.dim * (block.attention_width() + 3 * block.hidden);
  const int64_t parameters = config.slow_layers * qkv + (config.slow_layers - 1) * behind_attention;
  const double gflop = 2 * static_cast<double>(parameters) * options.prefill_columns / 1e9;
  return {
      .columns = options.prefill_columns,
      .columns_per_s = options.prefill_columns / best_s,
      .gflop_per_s = gflop / best_s,
      .share_of_compute_limit = share_of(gflop / best_s, compute_limit(limits, options.formats.operands))};
}

std::vector<FirstFrameFigures> bench_first_frame(const dual_ar::DualAr& model,
                                                 const ModelBenchOptions& options, ops::Context& ctx) {
  std::vector<FirstFrameFigures> figures;
  for (const int columns : options.prompts) {
    options.on_part(concat("first frame, ", columns, " columns"));
    const RecordingsOfPart recordings(ctx);
    Prompt prompt(ctx, model, options, columns);
    const int warm_up = ctx.graphs ? kWarmUp : 1;
    const double seconds = median_seconds(warm_up, options.prompt_repeats, [&] { prompt.first_frame(ctx); });
    figures.push_back({.columns = columns, .ms = seconds * 1e3});
  }
  return figures;
}

}  // namespace shoal::bench
