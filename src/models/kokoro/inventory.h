// Every tensor of a Kokoro checkpoint, by the names that normalise_kokoro_names leaves.
#pragma once

#include <string>
#include <vector>

#include "models/kokoro/config.h"
#include "weights/checkpoint.h"
#include "weights/inventory.h"

namespace shoal::kokoro {

using weights::RequiredTensor;

// Those that Kokoro::load asks for. Parts: "bert", "bert_encoder", "predictor", "decoder", "text_encoder".
std::vector<RequiredTensor> required_tensors(const Config& config);
// Those of the published file that nothing reads: PLBERT's pooler.
std::vector<RequiredTensor> unused_tensors(const Config& config);

// Throws Error(corrupt_file) naming tensors that are missing, have another shape, or are not known: the
// official loader passes over misnamed ones in silence. Norms may have weights of their own (Loader::
// style_affine).
void check_tensors(const weights::Checkpoint& checkpoint, const Config& config);

}  // namespace shoal::kokoro
