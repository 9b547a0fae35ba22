// The two sides of the quantiser (MODEL.md): frames of latents to codes, and codes to latents.
#pragma once

#include <span>
#include <vector>

#include "models/dac/batch.h"
#include "models/dac/config.h"
#include "models/dac/layers.h"
#include "models/dac/loader.h"
#include "models/dac/window_transformer.h"

namespace shoal::dac {

// A change of rate by a whole factor, down (strided) or up (transposed), then a ConvNeXt block.
struct Resampling {
  int64_t factor;
  CausalConv conv;
  ConvNextBlock block;
};

// Latents -> codes: downsampling, pre_module, then one search per codebook on the residual of the previous
// ones. The search is f32 in every dtype: it costs almost nothing, and a wrong code is audible.
class Quantiser {
 public:
  // largest_piece: frames of one sequence in one call.
  Quantiser(Loader& loader, const Config& config, int64_t largest_piece);
  // batch: frames.   latents: f32 [frames * latents_per_frame, latent_dim]; codes: i32 [frames,
  // num_codebooks].
  void forward(const Batch& batch, TensorView latents, TensorView codes) const;

 private:
  struct Codebook {
    ops::PackedMatrix in_proj, out_proj;  // [codebook_dim, latent_dim] and back
    Tensor entries;                       // f32 [n, codebook_dim], as decoded
    Tensor directions;                    // f32 [n, codebook_dim], normalised, as searched
  };
  Codebook load_codebook(Loader& loader, int64_t index) const;
  TensorView downsample(const Batch& batch, TensorView latents) const;
  void search(const Batch& batch, int64_t index, TensorView residual, TensorView found) const;

  Config config_;
  std::vector<Resampling> stages_;
  WindowTransformer pre_module_;
  std::vector<Codebook> codebooks_;
  Tensor minus_one_;  // f32 [latent_dim]
};

// Codes -> latents: the sum of the codes' projected entries, post_module, upsampling.
class Dequantiser {
 public:
  Dequantiser(Loader& loader, const Config& config, int64_t largest_piece);
  const WindowTransformer& post_module() const { return post_module_; }
  // codes: [frames, num_codebooks], none negative -> their rows in the table of all codes.
  void find_rows(std::span<const int32_t> codes, std::span<int32_t> table_rows) const;

  // batch: frames, `plans` give their positions in post_module. table_rows: i32 [frames, num_codebooks];
  // latents: f32 [frames * latents_per_frame, latent_dim].
  void forward(const Batch& batch, std::span<const WindowTransformer::Plan> plans, TensorView table_rows,
               TensorView latents) const;

 private:
  Tensor project_codebooks(Loader& loader) const;

  Config config_;
  Tensor table_;  // [total_codes, latent_dim] out_proj(entry) of every code, in the matrices' dtype
  WindowTransformer post_module_;
  std::vector<Resampling> stages_;
};

}  // namespace shoal::dac
