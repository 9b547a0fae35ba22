// What a model takes of its device's memory, from its configuration alone: weights are bound as they would be
// loaded, without memory; workspaces are by the shapes of what is computed.
#pragma once

#include <cstdint>

#include "models/kokoro/config.h"
#include "tensor/tensor.h"

namespace shoal::kokoro {

struct WeightBytes {
  int64_t plbert = 0, prosody = 0, text_encoder = 0, decoder = 0, generator = 0;
  int64_t total() const { return plbert + prosody + text_encoder + decoder + generator; }
};

// dtype: of the decoder's and the generator's matrices.
WeightBytes weight_bytes(const Config& config, DType dtype, Device device);

// What is spoken in one call.
struct BatchSize {
  int64_t utterances = 1;
  int64_t tokens = 1;           // with pads, of all
  int64_t frames = 1;           // of all
  int64_t frames_together = 1;  // of the largest group that is made into sound together
};

// Intermediate tensors of Kokoro::speak at their peak, with copies of what products read. What the ops of one
// context may take for themselves comes on top.
int64_t workspace_bytes(const Config& config, const BatchSize& batch, DType dtype, Device device);

// What speak() with a StepMemory takes besides: the memory itself, and recordings of steps of all sizes, by
// an allowance for a launch.
struct StepBytes {
  int64_t memory = 0, recordings = 0;
};
StepBytes step_bytes(const Config& config);

// Frames that are made into sound together: 42 s keep every processor busy, and their last layers take 0.7
// gigabytes. A longer utterance goes alone.
inline constexpr int32_t kMostFrames = 1680;

}  // namespace shoal::kokoro
