// What a model takes of its device's memory, from its configuration alone: weights are bound as they would be
// loaded, without memory, and a batch passes through them in a context that counts.
#pragma once

#include <cstdint>
#include <span>

#include "models/kokoro/config.h"
#include "tensor/tensor.h"

namespace shoal::kokoro {

struct WeightBytes {
  int64_t plbert = 0, prosody = 0, text_encoder = 0, decoder = 0, generator = 0;
  int64_t total() const { return plbert + prosody + text_encoder + decoder + generator; }
};

// dtype: of the decoder's and the generator's matrices.
WeightBytes weight_bytes(const Config& config, DType dtype, Device device);

struct UtteranceSize {
  int64_t tokens = 3;  // with pads
  int64_t frames = 1;
};

// What Kokoro::speak takes of its workspace for this batch at its peak, with scratch of the ops.
// `threads` matter only to a CPU. The last two utterances share a style, which
// takes more than if none do.
int64_t workspace_bytes(const Config& config, std::span<const UtteranceSize> batch, DType dtype,
                        Device device, int threads);

// What speak() with a StepMemory takes besides: the memory itself, and recordings of steps of all sizes, by
// an allowance for a launch.
struct StepBytes {
  int64_t memory = 0, recordings = 0;
};
StepBytes step_bytes(const Config& config);

}  // namespace shoal::kokoro
