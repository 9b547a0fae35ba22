// How long a checkpoint takes from the page cache to ready.
#pragma once

#include <cstdint>

#include "models/dual_ar/config.h"
#include "ops/context.h"
#include "tensor/dtype.h"

namespace shoal::bench {

struct LoadFigures {
  double language_model_s = 0, codec_s = 0;  // codec: decoder and encoder
  int64_t file_bytes = 0;
  int64_t weight_bytes = 0;         // in memory, packed
  int64_t peak_resident_bytes = 0;  // of the loading process
  double total_s() const { return language_model_s + codec_s; }
};

// Writes random checkpoints of these sizes (bf16 language model, f32 codec, as published; S1-mini's take 3.3
// GB, S2-Pro's 10.7 GB) into a temporary folder, loads them once to warm the page cache and once to be timed,
// and removes them. Throws Error(resource_exhausted or io): no room.
LoadFigures bench_load(const dual_ar::Config& language_model, DType dtype, ops::Context& ctx);

}  // namespace shoal::bench
