// Key rules of published checkpoints: after these, a model finds its tensors under one set of names.
#pragma once

#include <string_view>

#include "weights/checkpoint.h"

namespace shoal::weights {

// dual_ar/MODEL.md 7. S2 names first: "text_model.model." is stripped,
// "audio_decoder.codebook_embeddings." keeps its second part, any other "audio_decoder.X" becomes "fast_X".
// Then S1's rules: when the first name starts with "model.", every "model." is removed from all names; names
// that contain "audio_" are dropped.
void normalise_dual_ar_names(Checkpoint& checkpoint);

// dac/MODEL.md, Blocks. When any name contains "generator", only those with "generator." are kept and lose
// it. Buffers that can be computed ("*.freqs_cis", "*.causal_mask") are dropped.
void normalise_codec_names(Checkpoint& checkpoint);

// kokoro/MODEL.md, Blocks. "PART.module.X" becomes "PART.X": the official file was saved from modules wrapped
// for several devices.
void normalise_kokoro_names(Checkpoint& checkpoint);

// Whether an attention block ("layers.0.attention") stores wq, wk and wv apart instead of one wqkv (rows q,
// k, v).
bool has_split_qkv(const Checkpoint& checkpoint, std::string_view attention_prefix);

}  // namespace shoal::weights
