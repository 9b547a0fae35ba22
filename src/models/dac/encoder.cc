#include "models/dac/encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/transfer.h"

namespace shoal::dac {
namespace {

WindowTransformerShape transformer_shape(const Config& config, int64_t layers, int64_t dim) {
  return {.layers = layers,
          .dim = dim,
          .heads = Encoder::transformer_heads(dim),
          .head_dim = config.head_dim,
          .intermediate = 3 * dim,
          .channels = dim,
          .window = config.enc_window,
          .block_size = config.enc_block_size,
          .largest_piece = Encoder::kTransformerRows,
          .rope_base = config.rope_base,
          .eps = config.norm_eps};
}

}  // namespace

Encoder::Encoder(weights::TensorSource& source, ops::Context& ctx, const Config& config, DType dtype)
    : config_(config) {
  Loader loader(source, ctx, dtype, layout_);
  const size_t count = config.encoder_rates.size();
  const CausalConv::Spec first{
      .prefix = "encoder.block.0.conv", .in = 1, .out = config.encoder_dim, .kernel = 7};
  first_ = std::make_unique<CausalConv>(CausalConv::plain(loader, first, DType::f32));

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
  last_ = std::make_unique<CausalConv>(CausalConv::plain(loader, last, dtype));
  convolution_bytes_ = loader.bytes();

  quantiser_ = std::make_unique<Quantiser>(loader, config, kFramesPerPass);
  quantiser_bytes_ = loader.bytes() - convolution_bytes_;
}

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
    block.transformer = std::make_unique<WindowTransformer>(loader, prefix + ".block.5",
                                                            transformer_shape(config_, layers, out));
  }
  return block;
}

void Encoder::forward(const Batch& batch, const ops::RaggedRows& clips, std::span<const float> samples,
                      std::span<int32_t> codes) const {
  const auto width = static_cast<size_t>(config_.num_codebooks());
  for_each_piece(batch, kFramesPerPass, [&](const Batch& piece, int64_t begin, int64_t end) {
    const TensorView wave = padded_wave(batch, begin, end, clips, samples);
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    encode_piece(piece.on_device(), wave, codes.subspan(first * width, count * width));
  });
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

void Encoder::encode_piece(const Batch& batch, TensorView wave, std::span<int32_t> codes) const {
  const Workspace::Scope scope(batch.workspace());
  const Batch latents = batch.at_rate(config_.latents_per_frame());
  const TensorView x = latents.alloc(config_.encoder_dim << blocks_.size());
  produce(blocks_.size(), latents, wave, x);
  const TensorView z = latents.alloc(config_.latent_dim);
  last_->forward(latents, x, z);
  if (batch.tap) batch.tell(concat("block", blocks_.size() + 2), z);
  const TensorView found = batch.workspace().alloc(DType::i32, {batch.rows.rows(), config_.num_codebooks()});
  quantiser_->forward(batch, z, found);
  ops::download(*batch.ctx, found, codes.data());
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
  for_each_piece(batch, rows_in_cache(*batch.ctx, bytes_per_row),
                 [&](const Batch& piece, int64_t begin, int64_t end) {
                   const Batch finer = piece.at_rate(block.stride);
                   const TensorView x = finer.alloc(block.in);
                   const int64_t hop = block.samples_per_row;
                   produce(index - 1, finer, wave.slice(begin * hop, end * hop), x);
                   for (const ResidualUnit& unit : block.units) unit.forward(finer, x, x);
                   block.conv.forward(piece, x, y.slice(begin, end));
                 });
  if (block.transformer) {
    for_each_piece(batch, kTransformerRows, [&](const Batch& piece, int64_t begin, int64_t end) {
      block.transformer->forward(piece, block.transformer->plan(piece), y.slice(begin, end));
    });
  }
  if (batch.tap) batch.tell(concat("block", index), y);
}

}  // namespace shoal::dac
