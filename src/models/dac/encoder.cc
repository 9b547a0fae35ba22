#include "models/dac/encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/device_state.h"
#include "ops/transfer.h"

namespace shoal::dac {
namespace {

// How a batch is cut. Each layer carries its state over a cut, so the codes are the same.
struct Cuts {
  int64_t frames;            // of a pass
  int64_t transformer_rows;  // of a sequence in one call of a block's transformer
  int64_t quantiser_frames;  // of a sequence in one call of the quantiser's
  int64_t piece_bytes;       // on the way through a block's units: they stay in the second-level cache

  // Rows of a piece, whole tiles of the kernels.
  int64_t rows_of(int64_t bytes_per_row) const {
    constexpr int64_t kTile = 128;
    return std::max<int64_t>(1, piece_bytes / bytes_per_row / kTile) * kTile;
  }
};

// A GPU's launches outlast the work of few frames. The transformers keep room for their rows in each clip's
// state, so theirs are fewer.
constexpr Cuts kCutsInCaches = {
    .frames = 32, .transformer_rows = 128, .quantiser_frames = 32, .piece_bytes = 0};
constexpr Cuts kCuts = {
    .frames = 256, .transformer_rows = 256, .quantiser_frames = 128, .piece_bytes = int64_t{50} << 20};

const Cuts& cuts_of(Device device) { return ops::works_in_caches(device) ? kCutsInCaches : kCuts; }

WindowTransformerShape transformer_shape(const Config& config, int64_t layers, int64_t dim, int64_t piece) {
  return {.layers = layers,
          .dim = dim,
          .heads = Encoder::transformer_heads(dim),
          .head_dim = config.head_dim,
          .intermediate = 3 * dim,
          .channels = dim,
          .window = config.enc_window,
          .block_size = config.enc_block_size,
          .largest_piece = piece,
          .rope_base = config.rope_base,
          .eps = config.norm_eps};
}

}  // namespace

Encoder::Encoder(weights::TensorSource& source, ops::Context& ctx, const Config& config, MatrixFormat format)
    : config_(config), device_(ctx.device) {
  Loader loader(source, ctx, format, layout_);
  const size_t count = config.encoder_rates.size();
  const CausalConv::Spec first{
      .prefix = "encoder.block.0.conv", .in = 1, .out = config.encoder_dim, .kernel = 7};
  first_ = std::make_unique<CausalConv>(CausalConv::exact(loader, first));

  int64_t samples_per_row = 1;
  for (size_t i = 1; i <= count; ++i) {
    samples_per_row *= config.encoder_rates[i - 1];
    blocks_.push_back(load_block(loader, i, samples_per_row));
    if (blocks_.back().transformer)
      most_frames_ = std::min(most_frames_, kMaxPositions * samples_per_row / config.samples_per_frame());
  }
  const CausalConv::Spec last{.prefix = concat("encoder.block.", count + 2, ".conv"),
                              .in = config.encoder_dim << count,
                              .out = config.latent_dim,
                              .kernel = 3,
                              .snake = concat("encoder.block.", count + 1, ".alpha")};
  last_ = std::make_unique<CausalConv>(CausalConv::plain(loader, last));
  convolution_bytes_ = loader.bytes();

  quantiser_ = std::make_unique<Quantiser>(loader, config, cuts_of(device_).quantiser_frames);
  quantiser_bytes_ = loader.bytes() - convolution_bytes_;
}

int64_t Encoder::frames_per_pass(Device device) { return cuts_of(device).frames; }

Encoder::Block Encoder::load_block(Loader& loader, size_t index, int64_t samples_per_row) const {
  const std::string prefix = concat("encoder.block.", index);
  const int64_t stride = config_.encoder_rates[index - 1];
  const int64_t in = config_.encoder_dim << (index - 1), out = 2 * in;
  std::vector<ResidualUnit> units;
  for (const int64_t dilation : {1, 3, 9})
    units.emplace_back(loader, concat(prefix, ".block.", units.size()), in, dilation);
  const CausalConv::Spec spec{.prefix = prefix + ".block.4.conv",
                              .in = in,
                              .out = out,
                              .kernel = 2 * stride,
                              .snake = prefix + ".block.3.alpha"};
  Block block{stride, in, samples_per_row, std::move(units), CausalConv::strided(loader, spec, stride), {}};
  const int64_t layers = config_.encoder_transformer_layers[index - 1];
  if (layers > 0) {
    block.transformer = std::make_unique<WindowTransformer>(
        loader, prefix + ".block.5",
        transformer_shape(config_, layers, out, cuts_of(device_).transformer_rows));
  }
  return block;
}

void Encoder::forward(const Batch& batch, const ops::RaggedRows& clips, std::span<const float> samples,
                      TensorView found, std::span<int32_t> codes) const {
  for_each_piece(batch, cuts_of(device_).frames, [&](const Batch& piece, int64_t begin, int64_t end) {
    const TensorView wave = padded_wave(batch, begin, end, clips, samples);
    encode_piece(piece.on_device(), wave, found.slice(begin, end));
  });
  // Once, behind the last pass: a device need not wait for the host between passes.
  ops::download(*batch.ctx, found, codes.data());
}

TensorView Encoder::padded_wave(const Batch& batch, int64_t begin, int64_t end, const ops::RaggedRows& clips,
                                std::span<const float> samples) const {
  const int64_t hop = config_.samples_per_frame();
  const std::span<float> wave = host_array<float>(*batch.ctx, (end - begin) * hop);
  for (int s = 0; s < batch.sequences(); ++s) {
    const int64_t row = std::max(begin, batch.rows.begin(s));
    const int64_t rows = std::min(end, batch.rows.begin(s) + batch.rows.count(s)) - row;
    if (rows <= 0) continue;
    const int64_t first = (row - batch.rows.begin(s)) * hop;  // sample of the clip
    const int64_t present = std::clamp<int64_t>(clips.count(s) - first, 0, rows * hop);
    float* const out = wave.data() + (row - begin) * hop;
    if (present > 0) std::copy_n(samples.begin() + clips.begin(s) + first, present, out);
    std::fill_n(out + present, rows * hop - present, 0.0f);
  }
  return ops::upload(*batch.ctx, std::span<const float>(wave)).reshape({(end - begin) * hop, 1});
}

void Encoder::encode_piece(const Batch& batch, TensorView wave, TensorView codes) const {
  const Workspace::Scope scope(batch.workspace());
  const Batch latents = batch.at_rate(config_.latents_per_frame());
  const TensorView x = latents.alloc(config_.encoder_dim << blocks_.size());
  produce(blocks_.size(), latents, wave, x);
  const TensorView z = latents.alloc(config_.latent_dim);
  last_->forward(latents, x, z);
  if (batch.tap) batch.tell(concat("block", blocks_.size() + 2), z);
  quantiser_->forward(batch, z, codes);
}

// The high rates run in pieces that stay in the cache: each piece of a block's output asks the block before
// for just the rows it needs.
void Encoder::produce(size_t index, const Batch& batch, TensorView wave, TensorView y) const {
  if (index == 0) {
    first_->forward(batch, wave, y);
    batch.tell("block0", y);
    return;
  }
  const Block& block = blocks_[index - 1];
  const int64_t bytes_per_row = 3 * block.stride * block.in * static_cast<int64_t>(sizeof(float));
  for_each_piece(batch, rows_at_once(*batch.ctx, bytes_per_row, cuts_of(device_).rows_of(bytes_per_row)),
                 [&](const Batch& piece, int64_t begin, int64_t end) {
                   const Batch placed = piece.with_tables();
                   const Batch finer = placed.at_rate(block.stride);
                   const int64_t hop = block.samples_per_row;
                   const TensorView x =
                       run_units(finer, block.units, block.conv, block.in, [&](TensorView input) {
                         produce(index - 1, finer, wave.slice(begin * hop, end * hop), input);
                       });
                   block.conv.forward(placed, x, y.slice(begin, end));
                 });
  if (block.transformer) block.transformer->forward(batch, y);
  if (batch.tap) batch.tell(concat("block", index), y);
}

}  // namespace shoal::dac
