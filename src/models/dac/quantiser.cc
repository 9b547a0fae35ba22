#include "models/dac/quantiser.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/bf16.h"
#include "base/f16.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/transfer.h"
#include "ops/vector_quantise.h"

namespace shoal::dac {
namespace {

std::string codebook_prefix(int64_t index) {
  return index == 0 ? "quantizer.semantic_quantizer.quantizers.0"
                    : concat("quantizer.quantizer.quantizers.", index - 1);
}

int64_t entries_of(const Config& config, int64_t index) {
  return index == 0 ? config.semantic_codebook_size : config.codebook_size;
}

WindowTransformerShape transformer_shape(const Config& config, int64_t largest_piece) {
  return {.layers = config.q_layers,
          .dim = config.q_dim,
          .heads = config.q_heads,
          .head_dim = config.q_head_dim,
          .intermediate = config.q_inter,
          .channels = config.latent_dim,
          .window = config.q_window,
          .block_size = config.q_block_size,
          .largest_piece = largest_piece,
          .rope_base = config.rope_base,
          .eps = config.norm_eps};
}

// Rows divided by their length (floor 1e-12, MODEL.md, Encoding 7).
Tensor normalised_rows(TensorView rows) {
  Tensor out(DType::f32, rows.shape());
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    double square = 0;
    for (int64_t d = 0; d < rows.dim(1); ++d) square += double{rows.row<float>(i)[d]} * rows.row<float>(i)[d];
    const double length = std::max(std::sqrt(square), 1e-12);
    for (int64_t d = 0; d < rows.dim(1); ++d)
      out.view().row<float>(i)[d] = static_cast<float>(rows.row<float>(i)[d] / length);
  }
  return out;
}

// Rounded to the dtype of the matrices.
Tensor narrowed(Tensor values, DType dtype, ThreadTeam& team) {
  if (dtype == DType::f32) return values;
  Tensor out(dtype, values.shape());
  const auto round = dtype == DType::bf16 ? float_to_bf16 : float_to_f16;
  team.parallel_for(values.elements(), int64_t{1} << 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) out.as<uint16_t>()[i] = round(values.as<float>()[i]);
  });
  return out;
}

CausalConv::Spec resampling_spec(const std::string& prefix, int64_t dim, int64_t factor) {
  return {.prefix = prefix + ".0.conv", .in = dim, .out = dim, .kernel = factor};
}

}  // namespace

Quantiser::Quantiser(Loader& loader, const Config& config, int64_t largest_piece)
    : config_(config), pre_module_(loader, "quantizer.pre_module", transformer_shape(config, largest_piece)) {
  for (size_t i = 0; i < config.downsample_factor.size(); ++i) {
    const int64_t factor = config.downsample_factor[i];
    const std::string prefix = concat("quantizer.downsample.", i);
    stages_.push_back(
        {factor, CausalConv::strided(loader, resampling_spec(prefix, config.latent_dim, factor), factor),
         ConvNextBlock(loader, prefix + ".1", config.latent_dim)});
  }
  for (int64_t i = 0; i < config.num_codebooks(); ++i) codebooks_.push_back(load_codebook(loader, i));
  if (loader.names_only()) return;
  Tensor minus_one(DType::f32, {config.latent_dim});
  std::fill_n(minus_one.as<float>(), config.latent_dim, -1.0f);
  minus_one_ = ops::resident(loader.ctx(), std::move(minus_one));
}

Quantiser::Codebook Quantiser::load_codebook(Loader& loader, int64_t index) const {
  const std::string prefix = codebook_prefix(index);
  const int64_t dim = config_.codebook_dim, latent = config_.latent_dim;
  Codebook codebook;
  codebook.in_proj = loader.exact_conv(prefix + ".in_proj", latent, dim, 1);
  codebook.out_proj = loader.exact_conv(prefix + ".out_proj", dim, latent, 1);
  Tensor entries = loader.host_f32(prefix + ".codebook.weight", {entries_of(config_, index), dim});
  codebook.directions = loader.made(DType::f32, entries.shape(), [&] { return normalised_rows(entries); });
  codebook.entries = loader.placed(std::move(entries));
  return codebook;
}

void Quantiser::forward(const Batch& batch, TensorView latents, TensorView codes) const {
  const Workspace::Scope scope(batch.workspace());
  const TensorView residual = downsample(batch, latents);
  pre_module_.forward(batch, residual);
  batch.tell("pre_module", residual);
  for (int64_t i = 0; i < config_.num_codebooks(); ++i) search(batch, i, residual, codes.columns(i, i + 1));
}

TensorView Quantiser::downsample(const Batch& batch, TensorView latents) const {
  int64_t rate = config_.latents_per_frame();
  TensorView x = latents;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Resampling& stage = stages_[i];
    rate /= stage.factor;
    const Batch rows = batch.at_rate(rate);
    const TensorView y = rows.alloc(config_.latent_dim);
    stage.conv.forward(rows, x, y);
    stage.block.forward(rows, y);
    if (batch.tap) batch.tell(concat("downsample", i), y);
    x = y;
  }
  return x;
}

// found = the codes nearest to the residual; residual -= their decoded values.
void Quantiser::search(const Batch& batch, int64_t index, TensorView residual, TensorView found) const {
  const Workspace::Scope scope(batch.workspace());
  const Codebook& codebook = codebooks_[static_cast<size_t>(index)];
  if (batch.tap) batch.tell(concat('q', index, ".residual_in"), residual);
  const TensorView e = batch.alloc(config_.codebook_dim);
  ops::linear(*batch.ctx, residual, codebook.in_proj, e);
  if (batch.tap) batch.tell(concat('q', index, ".latent"), e);
  ops::nearest_code(*batch.ctx, e, codebook.directions, found);
  ops::gather_rows(*batch.ctx, codebook.entries, found, e);
  ops::linear(*batch.ctx, e, codebook.out_proj, residual, {.accumulate = true, .scale = minus_one_});
}

Dequantiser::Dequantiser(Loader& loader, const Config& config, int64_t largest_piece)
    : config_(config),
      table_(project_codebooks(loader)),
      post_module_(loader, "quantizer.post_module", transformer_shape(config, largest_piece)) {
  for (size_t i = 0; i < config.downsample_factor.size(); ++i) {
    const int64_t factor = config.downsample_factor[config.downsample_factor.size() - 1 - i];
    const std::string prefix = concat("quantizer.upsample.", i);
    stages_.push_back(
        {factor, CausalConv::transposed(loader, resampling_spec(prefix, config.latent_dim, factor), factor),
         ConvNextBlock(loader, prefix + ".1", config.latent_dim)});
  }
}

Tensor Dequantiser::project_codebooks(Loader& loader) const {
  const int64_t dim = config_.codebook_dim, latent = config_.latent_dim;
  const Shape shape = {config_.total_codes(), latent};
  Tensor table = loader.names_only() ? Tensor() : Tensor(DType::f32, shape);
  Workspace scratch;
  ops::Context host{.device = {}, .team = loader.ctx().team, .workspace = &scratch};
  int64_t begin = 0;
  for (int64_t i = 0; i < config_.num_codebooks(); ++i) {
    const std::string prefix = codebook_prefix(i);
    const int64_t entries = entries_of(config_, i);
    const weights::Weight weight = loader.source().convolution(prefix + ".out_proj", {latent, dim, 1});
    const weights::Weight bias = loader.source().tensor(prefix + ".out_proj.bias", {latent});
    const Tensor codebook = loader.host_f32(prefix + ".codebook.weight", {entries, dim});
    if (loader.names_only()) continue;
    const auto out_proj = ops::pack_conv1d(host, weight.view, bias.view, DType::f32);
    ops::linear(host, codebook, out_proj, table.view().slice(begin, begin + entries));
    begin += entries;
  }
  return loader.made(loader.dtype(), shape,
                     [&] { return narrowed(std::move(table), loader.dtype(), *host.team); });
}

void Dequantiser::find_rows(std::span<const int32_t> codes, std::span<int32_t> table_rows) const {
  const auto width = static_cast<size_t>(config_.num_codebooks());
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto book = static_cast<int64_t>(i % width);
    const int64_t first = book == 0 ? 0 : config_.semantic_codebook_size + (book - 1) * config_.codebook_size;
    const int64_t clamped = std::min<int64_t>(codes[i], entries_of(config_, book) - 1);
    table_rows[i] = static_cast<int32_t>(first + clamped);
  }
}

void Dequantiser::forward(const Batch& batch, std::span<const WindowTransformer::Plan> plans,
                          TensorView table_rows, TensorView latents) const {
  const Workspace::Scope scope(batch.workspace());
  TensorView x = stages_.empty() ? latents : batch.alloc(config_.latent_dim);
  ops::gather_sum(*batch.ctx, table_, table_rows, x);
  batch.tell("zq", x);
  post_module_.forward(batch, plans, x);
  batch.tell("post_module", x);

  int64_t rate = 1;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Resampling& stage = stages_[i];
    const Batch lower = batch.at_rate(rate);
    rate *= stage.factor;
    const Batch higher = batch.at_rate(rate);
    const TensorView y = i + 1 == stages_.size() ? latents : higher.alloc(config_.latent_dim);
    stage.conv.forward(lower, x, y);
    stage.block.forward(higher, y);
    if (batch.tap) batch.tell(concat("upsample", i), y);
    x = y;
  }
}

}  // namespace shoal::dac
