// What a Kokoro engine takes of its device's memory, all of it, before anything is taken.
#pragma once

#include <cstdint>
#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/memory_sizes.h"
#include "shoal/engine_config.h"
#include "shoal/statistics.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// The initial estimate for speech at speed 1; a running mean of measured values replaces it.
inline constexpr int64_t kUsualFramesPerSymbol = 3;

// Frames that chunks of one batch are expected to take at most (max_batch_frames, or the device's default).
int64_t frames_of_a_batch(const EngineConfig& config, bool device_computes);

struct KokoroMemoryPlan {
  // At most, of a batch: utterances; tokens, with pads, of all; frames of all at their usual pace. One long
  // utterance may have more than a batch of several.
  struct BatchSize {
    int64_t utterances = 1, tokens = 1, frames = 1;
  } batch;
  kokoro::WeightBytes weights;
  int64_t workspace = 0;    // of the batches that take the most
  kokoro::StepBytes steps;  // recorded ones, where the device has them
  int64_t available = 0;    // what all of it is taken from

  std::vector<MemoryPart> parts() const;
  int64_t total() const { return weights.total() + workspace + steps.memory + steps.recordings; }
  // Throws Error(resource_exhausted) as check_fits (engine/device_memory.h).
  void check() const;
};

// available: bytes that are free before the model is loaded. `threads` matter to a CPU only. Slower speech
// than at speed 1 takes more: the workspace grows when it comes, or its request is refused.
KokoroMemoryPlan plan_kokoro_memory(const EngineConfig& config, const kokoro::Config& model, DType dtype,
                                    Device device, int threads, int64_t available);

}  // namespace shoal::runtime
