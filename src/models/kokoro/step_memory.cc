#include "models/kokoro/step_memory.h"

#include <algorithm>

#include "ops/block_layout.h"

namespace shoal::kokoro {
namespace {

// The host's copy of a step's inputs.
struct TokenArrays {
  std::span<int32_t> tables, parts, utterance_of;
  std::span<float> styles;
};
struct FrameArrays {
  std::span<int32_t> tables, token_of;
  std::span<uint64_t> seeds;
};

TokenArrays lay_out(const ops::StepBlock* block, int64_t rows, int64_t style_width, TokenStep& step) {
  ops::BlockLayout layout(block);
  TokenArrays arrays;
  arrays.tables = layout.next<int32_t>(2, DType::i32, {2, 1}, &step.tables);
  arrays.parts = layout.next<int32_t>(3 * rows, DType::i32, {rows, 3}, &step.inputs.parts);
  arrays.utterance_of = layout.next<int32_t>(rows, DType::i32, {rows}, &step.inputs.utterance_of);
  arrays.styles = layout.next<float>(style_width, DType::f32, {1, style_width}, &step.inputs.styles);
  step.bytes = layout.bytes();
  return arrays;
}

FrameArrays lay_out(const ops::StepBlock* block, int64_t rows, FrameStep& step) {
  ops::BlockLayout layout(block);
  FrameArrays arrays;
  arrays.tables = layout.next<int32_t>(2, DType::i32, {2, 1}, &step.tables);
  arrays.token_of = layout.next<int32_t>(rows, DType::i32, {rows}, &step.token_of);
  arrays.seeds = layout.next<uint64_t>(1, DType::i64, {1}, &step.seeds);
  step.bytes = layout.bytes();
  return arrays;
}

// The largest of everything.
struct StepSizes {
  explicit StepSizes(const Network& network) : StepSizes(network, network.config()) {}
  StepSizes(const Network& network, const Config& config)
      : token_rows(Layout::recorded_total(config.max_positions)),
        frame_rows(Layout::recorded_total(StepMemory::kMostRecordedFrames)),
        prosody{1, network.prosody_columns()},
        decoder{1, network.decoder_columns()},
        d{token_rows, config.hidden_dim + config.style_dim},
        text{token_rows, config.hidden_dim},
        logits(token_rows * config.max_dur * int64_t{sizeof(float)}),
        samples(frame_rows * config.samples_per_frame() * int64_t{sizeof(float)}) {
    TokenStep token_step;
    lay_out(nullptr, token_rows, 2 * config.style_dim, token_step);
    tokens = token_step.bytes;
    FrameStep frame_step;
    lay_out(nullptr, frame_rows, frame_step);
    frames = frame_step.bytes;
  }

  int64_t total() const {
    int64_t bytes = tokens + logits + frames + samples;
    for (const Shape& shape : {prosody, decoder, d, text}) bytes += shape.elements() * int64_t{sizeof(float)};
    return bytes;
  }

  int64_t token_rows, frame_rows;
  Shape prosody, decoder, d, text;
  int64_t logits, samples, tokens = 0, frames = 0;  // bytes
};

}  // namespace

StepMemory::StepMemory(ops::Context& ctx, const Network& network)
    : serial_(ops::new_step_serial()),
      bytes_(0),
      max_dur_(network.config().max_dur),
      samples_per_frame_(network.samples_per_frame()),
      style_width_(2 * network.config().style_dim) {
  const StepSizes sizes(network);
  bytes_ = sizes.total();
  prosody_ = Tensor::zeros(DType::f32, sizes.prosody, ctx.device);
  decoder_ = Tensor::zeros(DType::f32, sizes.decoder, ctx.device);
  d_ = Tensor::zeros(DType::f32, sizes.d, ctx.device);
  text_ = Tensor::zeros(DType::f32, sizes.text, ctx.device);
  token_block_ = ops::StepBlock(ctx, sizes.tokens);
  logits_ = ops::StepBlock(ctx, sizes.logits);
  frame_block_ = ops::StepBlock(ctx, sizes.frames);
  samples_ = ops::StepBlock(ctx, sizes.samples);
}

int64_t StepMemory::bytes_of(const Network& network) { return StepSizes(network).total(); }

Encoded StepMemory::encoded() const {
  return {.prosody = prosody_, .decoder = decoder_, .d = d_, .text = text_};
}

TokenStep StepMemory::write(const TokenBatch& batch) const {
  const int64_t rows = batch.layout.total();
  TokenStep step{.logits = logits_.device(0, DType::f32, {rows, max_dur_})};
  const TokenArrays arrays = lay_out(&token_block_, rows, style_width_, step);
  std::ranges::copy(batch.layout.tables(), arrays.tables.begin());
  std::ranges::copy(batch.parts, arrays.parts.begin());
  std::ranges::copy(batch.utterance_of, arrays.utterance_of.begin());
  std::ranges::copy(batch.styles, arrays.styles.begin());
  return step;
}

FrameStep StepMemory::write(const FrameBatch& batch) const {
  const int64_t rows = batch.layout.total();
  FrameStep step{.samples = samples_.device(0, DType::f32, {rows * samples_per_frame_})};
  const FrameArrays arrays = lay_out(&frame_block_, rows, step);
  std::ranges::copy(batch.layout.tables(), arrays.tables.begin());
  std::ranges::copy(batch.token_of, arrays.token_of.begin());
  std::ranges::copy(batch.seeds, arrays.seeds.begin());
  return step;
}

TensorView StepMemory::host_logits(const TokenStep& step) const {
  return TensorView::of(reinterpret_cast<const float*>(logits_.host()), DType::f32, step.logits.shape());
}

std::span<const float> StepMemory::host_samples() const {
  return {reinterpret_cast<const float*>(samples_.host()),
          static_cast<size_t>(samples_.bytes()) / sizeof(float)};
}

}  // namespace shoal::kokoro
