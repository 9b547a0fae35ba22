#include "models/dac/decoder.h"

#include <string>
#include <utility>

namespace shoal::dac {

Decoder::Decoder(WeightSource& source, ops::Context& ctx, const Config& config, DType dtype)
    : config_(config) {
  Loader loader(source, ctx, dtype, layout_);
  dequantiser_ = std::make_unique<Dequantiser>(loader, config, kFramesPerPass);
  quantiser_bytes_ = loader.bytes();

  const CausalConv::Spec first{
      .prefix = "decoder.model.0.conv", .in = config.latent_dim, .out = config.decoder_dim, .kernel = 7};
  first_ = std::make_unique<CausalConv>(CausalConv::plain(loader, first, dtype));
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
  // f32 in every dtype: in the reference's bf16 the samples carry 8 bits of mantissa (spec dac 9).
  last_ = std::make_unique<CausalConv>(CausalConv::plain(loader, last, DType::f32));
  convolution_bytes_ = loader.bytes() - quantiser_bytes_;
}

void Decoder::forward(const Batch& batch, std::span<const int32_t> codes, std::span<float> pcm) const {
  const auto width = static_cast<size_t>(config_.num_codebooks());
  const auto hop = static_cast<size_t>(config_.samples_per_frame());
  for_each_piece(batch, kFramesPerPass, [&](const Batch& frames, int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    const Batch latents = frames.at_rate(config_.latents_per_frame());
    const TensorView z = latents.alloc(config_.latent_dim);
    dequantiser_->forward(frames, codes.subspan(first * width, count * width), z);
    const TensorView x = latents.alloc(config_.decoder_dim);
    first_->forward(latents, z, x);
    batch.tell("model0", x);
    consume(0, latents, x, pcm.subspan(first * hop, count * hop));
  });
}

// The high rates run in pieces that stay in the cache: each piece of a block's output goes all the way to
// samples before the next one is made.
void Decoder::consume(size_t index, const Batch& batch, TensorView x, std::span<float> pcm) const {
  if (index == blocks_.size()) {
    const TensorView wave = TensorView::of(pcm.data(), DType::f32, {batch.rows.rows(), 1});
    last_->forward(batch, x, wave, {.activation = ops::Activation::tanh});
    if (batch.tap) batch.tell(concat("model", index + 3), wave);
    return;
  }
  const Block& block = blocks_[index];
  const int64_t bytes_per_row = 3 * block.stride * block.out * static_cast<int64_t>(sizeof(float));
  for_each_piece(batch, rows_in_cache(*batch.ctx, bytes_per_row),
                 [&](const Batch& piece, int64_t begin, int64_t end) {
                   const Batch finer = piece.at_rate(block.stride);
                   const TensorView y = finer.alloc(block.out);
                   block.conv.forward(piece, x.slice(begin, end), y);
                   for (const ResidualUnit& unit : block.units) unit.forward(finer, y);
                   if (batch.tap) batch.tell(concat("model", index + 1), y);
                   const auto first = static_cast<size_t>(begin * block.samples_per_row);
                   const auto count = static_cast<size_t>((end - begin) * block.samples_per_row);
                   consume(index + 1, finer, y, pcm.subspan(first, count));
                 });
}

}  // namespace shoal::dac
