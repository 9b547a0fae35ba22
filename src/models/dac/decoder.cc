#include "models/dac/decoder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::dac {
namespace {

// Frames of a pass: enough rows to outweigh the reading of the weights, and a GPU's launches.
constexpr int64_t kFramesPerPass = 512, kFramesPerPassInCaches = 64;
// Frames of one stream that attention takes on at a time: its ring of keys and values has room for them.
constexpr int64_t kFramesOfPlan = 128, kFramesOfPlanInCaches = 64;
static_assert(kFramesPerPass % kFramesOfPlan == 0 && kFramesPerPassInCaches % kFramesOfPlanInCaches == 0);

// Of a piece of the high rates on a GPU: what a pass holds there takes 0.8 MB for each frame of a rate.
constexpr int64_t kFramesOfPiece = 128;

// Rows [begin, end) of a block's input. Rows that are ready for it are not cut: on a GPU pieces have as many
// frames at every rate.
TensorView rows_of(TensorView x, const Batch& batch, int64_t begin, int64_t end) {
  if (x.dtype() == DType::f32) return x.slice(begin, end);
  CHECK(begin == 0 && end == batch.rows.rows(), "ready rows cannot be cut");
  return x;
}

// Larger passes keep a device busy for longer than it takes to launch them, and would be recorded in more
// sizes than ever come again.
constexpr int64_t kMostRecordedFrames = 16;

int64_t frames_of_plan(Device device) {
  return ops::works_in_caches(device) ? kFramesOfPlanInCaches : kFramesOfPlan;
}

}  // namespace

Decoder::Decoder(weights::TensorSource& source, ops::Context& ctx, const Config& config, MatrixFormat format)
    : config_(config), device_(ctx.device) {
  Loader loader(source, ctx, format, layout_);
  dequantiser_ = std::make_unique<Dequantiser>(loader, config, frames_of_plan(ctx.device));
  quantiser_bytes_ = loader.bytes();

  const CausalConv::Spec first{
      .prefix = "decoder.model.0.conv", .in = config.latent_dim, .out = config.decoder_dim, .kernel = 7};
  first_ = std::make_unique<CausalConv>(CausalConv::plain(loader, first));
  const size_t count = config.decoder_rates.size();
  int64_t samples_per_row = config.samples_per_frame() / config.latents_per_frame();
  for (size_t i = 0; i < count; ++i) {
    const std::string prefix = concat("decoder.model.", i + 1);
    const int64_t stride = config.decoder_rates[i];
    const int64_t in = config.decoder_dim >> i, out = config.decoder_dim >> (i + 1);
    const CausalConv::Spec spec{.prefix = prefix + ".block.1.conv",
                                .in = in,
                                .out = out,
                                .kernel = 2 * stride,
                                .snake = prefix + ".block.0.alpha"};
    Block block{stride, out, samples_per_row, CausalConv::transposed(loader, spec, stride), {}};
    for (const int64_t dilation : {1, 3, 9})
      block.units.emplace_back(loader, concat(prefix, ".block.", 2 + block.units.size()), out, dilation);
    blocks_.push_back(std::move(block));
    samples_per_row /= stride;
  }
  const CausalConv::Spec last{.prefix = concat("decoder.model.", count + 2, ".conv"),
                              .in = config.decoder_dim >> count,
                              .out = 1,
                              .kernel = 7,
                              .snake = concat("decoder.model.", count + 1, ".alpha")};
  // f32 in every dtype: in the reference's bf16 the samples carry 8 bits of mantissa (MODEL.md, Precision).
  last_ = std::make_unique<CausalConv>(CausalConv::exact(loader, last));
  convolution_bytes_ = loader.bytes() - quantiser_bytes_;
}

int64_t Decoder::frames_per_pass(Device device) {
  return ops::works_in_caches(device) ? kFramesPerPassInCaches : kFramesPerPass;
}

DecodeSizes Decoder::sizes(int streams) const {
  const int64_t frames = frames_per_pass(device_), together = std::min<int64_t>(streams, frames);
  const int64_t plans = frames / frames_of_plan(device_);  // at most: all but the last end within a sequence
  return {.streams = together,
          .frames = frames,
          .codebooks = config_.num_codebooks(),
          .samples_per_frame = config_.samples_per_frame(),
          .plans = plans,
          .plan_sequences = together + plans - 1,
          .table_pages = WindowTransformer::table_pages(kMaxPositions)};
}

void Decoder::forward(const Batch& batch, const DecodeMemory& memory, std::span<const int32_t> codes,
                      FunctionRef<void(std::span<const float>)> take) const {
  ops::Context& ctx = *batch.ctx;
  const int64_t width = config_.num_codebooks(), rows = batch.rows.rows();
  ops::synchronize(ctx);           // the rest of a failed pass may still read the memory
  std::span<const float> waiting;  // samples of the pass before
  const auto take_waiting = [&] {
    if (!waiting.empty()) take(std::exchange(waiting, {}));
  };
  for (int64_t begin = 0, end; begin < rows; begin = end) {
    end = std::min(rows, begin + frames_per_pass(device_));
    const Workspace::Scope scope(ctx.host_memory());
    const Pass pass = prepare(
        batch.piece(begin, end), memory,
        codes.subspan(static_cast<size_t>(begin * width), static_cast<size_t>((end - begin) * width)));
    const bool recorded = !batch.tap && end - begin <= kMostRecordedFrames;
    if (recorded || ops::works_in_caches(ctx.device)) take_waiting();  // the pass overwrites them
    if (recorded) {
      ops::run_step(ctx, pass.key, [&] {
        run(pass, memory);
        memory.samples().copy_to_host(ctx, pass.samples.bytes());
      });
    } else {
      run(pass, memory);
      take_waiting();  // while the device is at work
      memory.samples().copy_to_host(ctx, pass.samples.bytes());
    }
    ops::synchronize(ctx);
    waiting = {reinterpret_cast<const float*>(memory.samples().host()),
               static_cast<size_t>(pass.samples.elements())};
  }
  take_waiting();
}

Decoder::Pass Decoder::prepare(const Batch& frames, const DecodeMemory& memory,
                               std::span<const int32_t> codes) const {
  const int64_t rows = frames.rows.rows(), sequences = frames.sequences();
  const TensorView rope = dequantiser_->post_module().rope_for(frames);
  const int64_t pages = WindowTransformer::table_pages(rope.dim(0));
  int64_t plans = 0;
  for (int64_t end = 0; end < rows; ++plans) end = frames.end_of_piece(end, frames_of_plan(device_));

  const PassInputs in(&memory.inputs(), {.streams = sequences,
                                         .frames = rows,
                                         .codebooks = config_.num_codebooks(),
                                         .plans = plans,
                                         .plan_sequences = sequences + plans - 1,
                                         .table_pages = pages});
  std::ranges::copy(frames.rows.offsets, in.offsets.host.begin());
  std::ranges::copy(frames.slots, in.slots.host.begin());
  dequantiser_->find_rows(codes, in.table_rows.host);

  Pass pass{.key = {this, memory.serial() * (kMaxPositions + 1) + pages, rows, sequences}, .frames = frames};
  pass.frames.device_offsets = in.offsets.device;
  pass.frames.device_slots = in.slots.device;
  pass.plans = write_plans(frames, plans, rope, in);
  pass.table_rows = in.table_rows.device;
  pass.samples = memory.samples().device(0, DType::f32, {rows * config_.samples_per_frame(), 1});
  pass.input_bytes = in.bytes;
  return pass;
}

std::span<const WindowTransformer::Plan> Decoder::write_plans(const Batch& frames, int64_t count,
                                                              TensorView rope, const PassInputs& in) const {
  const int64_t pages = WindowTransformer::table_pages(rope.dim(0));
  const auto plans = host_array<WindowTransformer::Plan>(*frames.ctx, count);
  int64_t begin = 0, before = 0, offset = 0;  // rows, sequences and offsets of the plans before
  for (WindowTransformer::Plan& plan : plans) {
    const int64_t end = frames.end_of_piece(begin, frames_of_plan(device_));
    const Batch piece = frames.piece(begin, end);
    const int64_t sequences = piece.sequences();
    const PassInputs::Array offsets = in.plan_offsets.part(offset, offset + sequences + 1),
                            positions = in.positions.part(begin, end), owners = in.owners.part(begin, end),
                            page_table = in.page_table.part(before, before + sequences);
    std::ranges::copy(piece.rows.offsets, offsets.host.begin());
    for (int s = 0; s < sequences; ++s)
      std::fill_n(owners.host.begin() + piece.rows.begin(s), piece.rows.count(s), s);
    dequantiser_->post_module().write_plan(piece, positions.host, page_table.host);
    plan = {.batch = {.rows = piece.rows,
                      .positions = positions.host,
                      .page_table = page_table.host,
                      .pages_per_sequence = pages,
                      .page_size = kPageSize,
                      .tables = {.offsets = offsets.device,
                                 .positions = positions.device,
                                 .sequences = owners.device,
                                 .page_table = page_table.device,
                                 .single_rows = end - begin == sequences}},
            .rope = rope};
    begin = end, before += sequences, offset += sequences + 1;
  }
  return plans;
}

void Decoder::run(const Pass& pass, const DecodeMemory& memory) const {
  const Batch& frames = pass.frames;
  ops::Context& ctx = *frames.ctx;
  const Workspace::Scope scope(frames.workspace());
  memory.inputs().copy_to_device(ctx, pass.input_bytes);
  const Batch latents = frames.at_rate(config_.latents_per_frame());
  const TensorView z = latents.alloc(config_.latent_dim);
  dequantiser_->forward(frames, pass.plans, pass.table_rows, z);
  const TensorView x = latents.alloc(config_.decoder_dim);
  first_->forward(latents, z, x);
  frames.tell("model0", x);
  consume(0, latents, x, pass.samples);
}

// The high rates run in pieces that stay in the cache: each piece of a block's output goes all the way to
// samples before the next one is made.
void Decoder::consume(size_t index, const Batch& batch, TensorView x, TensorView samples) const {
  if (index == blocks_.size()) {
    last_->forward(batch, x, samples, {.activation = ops::Activation::tanh});
    if (batch.tap) batch.tell(concat("model", index + 3), samples);
    return;
  }
  const Block& block = blocks_[index];
  const int64_t bytes_per_row = 3 * block.stride * block.out * static_cast<int64_t>(sizeof(float));
  for_each_piece(batch,
                 rows_at_once(*batch.ctx, bytes_per_row,
                              kFramesOfPiece * config_.samples_per_frame() / block.samples_per_row),
                 [&](const Batch& piece, int64_t begin, int64_t end) {
                   const Batch placed = piece.with_tables(), finer = placed.at_rate(block.stride);
                   const TensorView y = finer.alloc(block.out);
                   // A tap is told f32 rows.
                   const bool is_read = index + 1 < blocks_.size() && !batch.tap;
                   const CausalConv* const reader = is_read ? &blocks_[index + 1].conv : nullptr;
                   const TensorView made = run_units(finer, block.units, reader, y, [&](TensorView input) {
                     block.conv.forward(placed, rows_of(x, batch, begin, end), input);
                   });
                   if (batch.tap) batch.tell(concat("model", index + 1), made);
                   const int64_t hop = block.samples_per_row;
                   consume(index + 1, finer, made, samples.slice(begin * hop, end * hop));
                 });
}

}  // namespace shoal::dac
