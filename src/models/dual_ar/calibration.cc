#include "models/dual_ar/calibration.h"

#include <algorithm>
#include <numeric>

#include "models/dual_ar/bind.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/transfer.h"

namespace shoal::dual_ar {
namespace {

constexpr size_t kSpokenTogether = 8;    // sequences: a CPU reads the weights once for all of them
constexpr int64_t kFramesTogether = 64;  // of the fast transformer

std::vector<int32_t> counting(int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// A few prompts and their frames, each with one page.
class FewUtterances {
 public:
  FewUtterances(ops::Context& ctx, const DualAr& model, std::span<const std::vector<int32_t>> prompts,
                int64_t frames, Sampling sampling)
      : ctx_(ctx),
        model_(model),
        width_(static_cast<size_t>(model.config().columns())),
        prompts_(prompts),
        page_size_(frames + longest(prompts, width_)),
        cache_(model.config(), std::ssize(prompts), page_size_, DType::f32),
        memory_(ctx, model.config(), std::ssize(prompts), 1) {
    for (const std::vector<int32_t>& prompt : prompts) {
      utterances_.emplace_back(model.config(), sampling, static_cast<int64_t>(prompt.size() / width_),
                               frames);
      ++sampling.seed;
    }
  }

  std::vector<SpokenColumns> speak() {
    const std::vector<int32_t> pages = counting(std::ssize(prompts_));
    for (size_t i = 0; i < prompts_.size(); ++i) read_prompt(i);
    std::vector<FrameRequest> requests;
    for (const Utterance& utterance : utterances_) requests.push_back(utterance.next_request());
    std::vector<int32_t> frames(requests.size() * width_);
    model_.generate_frames(ctx_, memory_, requests, frames);
    for (size_t i = 0; i < prompts_.size(); ++i)
      utterances_[i].accept(std::span(frames).subspan(i * width_, width_));
    while (step()) {
    }
    std::vector<SpokenColumns> spoken;
    for (size_t i = 0; i < prompts_.size(); ++i) spoken.push_back(spoken_of(i));
    return spoken;
  }

 private:
  static int64_t longest(std::span<const std::vector<int32_t>> prompts, size_t width) {
    size_t most = 0;
    for (const std::vector<int32_t>& prompt : prompts) most = std::max(most, prompt.size() / width);
    return static_cast<int64_t>(most);
  }

  void read_prompt(size_t i) {
    const auto count = static_cast<int32_t>(prompts_[i].size() / width_), page = static_cast<int32_t>(i);
    const std::vector<int32_t> positions = counting(count);
    const int32_t offsets[] = {0, count};
    const ops::BatchPlan plan{.rows = {offsets},
                              .positions = positions,
                              .page_table = {&page, 1},
                              .pages_per_sequence = 1,
                              .page_size = page_size_};
    const auto row = static_cast<int64_t>(i);
    model_.forward_slow(ctx_, plan, prompts_[i], cache_, memory_.hidden().slice(row, row + 1));
  }

  // One frame of all that go on; false if none does.
  bool step() {
    std::vector<int32_t> pages, positions, columns;
    std::vector<FrameRequest> requests;
    for (size_t i = 0; i < utterances_.size(); ++i) {
      const Utterance& utterance = utterances_[i];
      if (utterance.finished()) continue;
      pages.push_back(static_cast<int32_t>(i));
      positions.push_back(static_cast<int32_t>(utterance.next_position()));
      columns.insert(columns.end(), utterance.last_frame().begin(), utterance.last_frame().end());
      requests.push_back(utterance.next_request());
    }
    if (requests.empty()) return false;
    const std::vector<int32_t> offsets = counting(std::ssize(requests) + 1);
    const ops::BatchPlan plan{.rows = {offsets},
                              .positions = positions,
                              .page_table = pages,
                              .pages_per_sequence = 1,
                              .page_size = page_size_};
    std::vector<int32_t> frames(columns.size());
    model_.decode_frames(ctx_, memory_, plan, columns, requests, cache_, frames);
    for (size_t i = 0; i < pages.size(); ++i)
      utterances_[static_cast<size_t>(pages[i])].accept(std::span(frames).subspan(i * width_, width_));
    return true;
  }

  // Without the frame that only says that the speech has ended.
  SpokenColumns spoken_of(size_t i) const {
    const Utterance& utterance = utterances_[i];
    SpokenColumns spoken{prompts_[i], utterance.prompt_columns()};
    const int64_t kept = utterance.finish_reason() == FinishReason::end_token ? utterance.speech_frames()
                                                                              : utterance.frame_count();
    const auto values = utterance.frames().first(static_cast<size_t>(kept) * width_);
    spoken.columns.insert(spoken.columns.end(), values.begin(), values.end());
    return spoken;
  }

  ops::Context& ctx_;
  const DualAr& model_;
  const size_t width_;
  const std::span<const std::vector<int32_t>> prompts_;
  const int64_t page_size_;
  KvCache cache_;
  StepMemory memory_;
  std::vector<Utterance> utterances_;
};

}  // namespace

std::vector<SpokenColumns> speak_prompts(ops::Context& ctx, const DualAr& model,
                                         std::span<const std::vector<int32_t>> prompts, int64_t frames,
                                         const Sampling& sampling,
                                         const std::function<void(size_t spoken)>& done) {
  std::vector<SpokenColumns> all;
  for (size_t first = 0; first < prompts.size(); first += kSpokenTogether) {
    Sampling own = sampling;
    own.seed += first;
    const auto few = prompts.subspan(first, std::min(kSpokenTogether, prompts.size() - first));
    for (SpokenColumns& spoken : FewUtterances(ctx, model, few, frames, own).speak())
      all.push_back(std::move(spoken));
    done(all.size());
  }
  return all;
}

LayerReplay::LayerReplay(ops::Context& ctx, const DualAr& model, std::vector<SpokenColumns> spoken)
    : model_(model), spoken_(std::move(spoken)) {
  embed(ctx);
}

void LayerReplay::embed(ops::Context& ctx) {
  const int64_t width = model_.config().columns();
  int64_t positions = 0;
  for (const SpokenColumns& spoken : spoken_) {
    const int64_t count = std::ssize(spoken.columns) / width;
    positions += count, longest_ = std::max(longest_, count);
  }
  slow_ = Tensor(DType::f32, {positions, model_.config().slow.dim});
  int64_t first = 0;
  for (const SpokenColumns& spoken : spoken_) {
    const int64_t count = std::ssize(spoken.columns) / width;
    model_.embed(ctx, TensorView::of(spoken.columns.data(), DType::i32, {count, width}),
                 slow_.view().slice(first, first + count));
    first += count;
  }
}

void LayerReplay::run_layer(ops::Context& ctx, BlockObserver& observer) {
  const Config& config = model_.config();
  CHECK(next_ < config.slow_layers + config.fast_layers, "layer ", next_);
  if (next_ == config.slow_layers) begin_fast(ctx);
  if (next_ < config.slow_layers)
    run_slow(ctx, model_.weights_->slow_layers[static_cast<size_t>(next_)], observer);
  else
    run_fast(ctx, model_.weights_->fast_layers[static_cast<size_t>(next_ - config.slow_layers)], observer);
  ++next_;
}

void LayerReplay::run_slow(ops::Context& ctx, const BlockWeights& weights, BlockObserver& observer) {
  Config one = model_.config();
  one.slow_layers = 1;
  const KvCache cache(one, 1, longest_, DType::f32);
  int64_t first = 0;
  for (const SpokenColumns& spoken : spoken_) {
    const auto count = static_cast<int32_t>(std::ssize(spoken.columns) / one.columns());
    const std::vector<int32_t> positions = counting(count);
    const int32_t offsets[] = {0, count}, page = 0;
    const ops::BatchPlan plan{.rows = {offsets},
                              .positions = positions,
                              .page_table = {&page, 1},
                              .pages_per_sequence = 1,
                              .page_size = longest_};
    const Workspace::Scope scope(*ctx.workspace);
    ops::Residual stream(ctx, slow_.view().slice(first, first + count), model_.formats().operands);
    forward_block(ctx, one.slow, weights, model_.weights_->slow_rope, ops::on_device(ctx, plan),
                  cache.layer(0), stream, &observer);
    ops::settled(ctx, stream);
    first += count;
  }
}

// Position 0 of a frame reads the hidden state that it was drawn from, position k the code of codebook k - 1.
void LayerReplay::begin_fast(ops::Context& ctx) {
  const Config& config = model_.config();
  const Weights& weights = *model_.weights_;
  const int64_t width = config.columns(), codebooks = config.num_codebooks, dim = config.fast.dim;
  std::vector<int32_t> sources, codes;  // rows of slow_; [frames, num_codebooks - 1]
  int64_t first = 0;
  for (const SpokenColumns& spoken : spoken_) {
    const int64_t count = std::ssize(spoken.columns) / width;
    for (int64_t at = spoken.prompt; at < count; ++at) {
      sources.push_back(static_cast<int32_t>(first + at - 1));
      const auto frame = spoken.columns.begin() + at * width;
      codes.insert(codes.end(), frame + 1, frame + codebooks);
    }
    first += count;
  }
  const auto frames = static_cast<int64_t>(sources.size());
  Tensor hidden(DType::f32, {frames, config.slow.dim});
  ops::gather_rows(ctx, slow_, TensorView::of(sources.data(), DType::i32, {frames}), hidden);
  slow_ = Tensor(DType::f32, {0, config.slow.dim});
  if (config.norm_fast_input) ops::rms_norm(ctx, hidden, weights.norm, config.slow.norm_eps, hidden);
  fast_ = Tensor(DType::f32, {frames * codebooks, dim});
  const TensorView rows = fast_.view().reshape({frames, codebooks * dim});
  if (weights.fast_in.outputs > 0)
    ops::linear(ctx, hidden, weights.fast_in, rows.columns(0, dim));
  else
    for (int64_t i = 0; i < frames; ++i) std::copy_n(hidden.view().row<float>(i), dim, rows.row<float>(i));
  const TensorView ids = TensorView::of(codes.data(), DType::i32, {frames, codebooks - 1});
  for (int64_t k = 1; k < codebooks; ++k)
    ops::gather_rows(ctx, weights.fast_embedding, ids.columns(k - 1, k),
                     rows.columns(k * dim, (k + 1) * dim));
}

void LayerReplay::run_fast(ops::Context& ctx, const BlockWeights& weights, BlockObserver& observer) {
  const Config& config = model_.config();
  const int64_t codebooks = config.num_codebooks, frames = fast_.view().dim(0) / codebooks;
  const Shape pages{kFramesTogether, config.fast.kv_heads, codebooks, config.fast.head_dim};
  const Tensor keys(DType::f32, pages), values(DType::f32, pages);
  const std::vector<int32_t> page_table = counting(kFramesTogether);
  std::vector<int32_t> positions, offsets = {0};
  for (int64_t i = 0; i < kFramesTogether; ++i) {
    for (int32_t k = 0; k < codebooks; ++k) positions.push_back(k);
    offsets.push_back(static_cast<int32_t>(positions.size()));
  }
  for (int64_t first = 0; first < frames; first += kFramesTogether) {
    const int64_t count = std::min(kFramesTogether, frames - first);
    const auto several = static_cast<size_t>(count);
    const ops::BatchPlan plan{
        .rows = {std::span(offsets).first(several + 1)},
        .positions = std::span(positions).first(several * static_cast<size_t>(codebooks)),
        .page_table = std::span(page_table).first(several),
        .pages_per_sequence = 1,
        .page_size = codebooks};
    const Workspace::Scope scope(*ctx.workspace);
    ops::Residual stream(ctx, fast_.view().slice(first * codebooks, (first + count) * codebooks),
                         model_.formats().operands);
    forward_block(ctx, config.fast, weights, model_.weights_->fast_rope, ops::on_device(ctx, plan),
                  {keys, values}, stream, &observer);
    ops::settled(ctx, stream);
  }
}

}  // namespace shoal::dual_ar
