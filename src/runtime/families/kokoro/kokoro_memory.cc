#include "runtime/families/kokoro/kokoro_memory.h"

#include <algorithm>

#include "ops/device_state.h"
#include "runtime/engine/device_memory.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kCpuFrames = 400, kDeviceFrames = 8000;
constexpr int64_t kFastest = 4;  // speed: this many times as many tokens in the same number of frames

// As many of the longest utterances as a batch may hold, or one.
kokoro::BatchSize largest_batch(const EngineConfig& config, const kokoro::Config& model,
                                bool device_computes) {
  const int64_t tokens = model.most_phonemes() + 2, frames = tokens * kUsualFramesPerSymbol;
  const int64_t most = frames_of_a_batch(config, device_computes);
  kokoro::BatchSize batch{.utterances = config.max_batch_size};
  batch.tokens =
      std::min(batch.utterances * tokens, std::max(tokens, most * kFastest / kUsualFramesPerSymbol));
  batch.frames = std::min(batch.utterances * frames, std::max(frames, most));
  batch.frames_together = std::min(batch.frames, std::max<int64_t>(frames, kokoro::kMostFrames));
  return batch;
}

}  // namespace

int64_t frames_of_a_batch(const EngineConfig& config, bool device_computes) {
  if (config.max_batch_frames > 0) return config.max_batch_frames;
  return device_computes ? kDeviceFrames : kCpuFrames;
}

std::vector<MemoryPart> KokoroMemoryPlan::parts() const {
  std::vector<MemoryPart> parts = {
      {"PLBERT", weights.plbert},   {"prosody", weights.prosody},     {"text encoder", weights.text_encoder},
      {"decoder", weights.decoder}, {"generator", weights.generator}, {"workspace of a batch", workspace},
      {"steps", steps.memory},      {"recordings", steps.recordings}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

void KokoroMemoryPlan::check() const { check_fits(parts(), available); }

KokoroMemoryPlan plan_kokoro_memory(const EngineConfig& config, const kokoro::Config& model, DType dtype,
                                    Device device, int threads, int64_t available) {
  KokoroMemoryPlan plan{.batch = largest_batch(config, model, ops::computes_by_itself(device)),
                        .weights = kokoro::weight_bytes(model, dtype, device),
                        .available = available};
  plan.workspace =
      kokoro::workspace_bytes(model, plan.batch, dtype, device) + op_scratch_bytes(device, threads);
  if (config.cuda_graphs && ops::computes_by_itself(device)) plan.steps = kokoro::step_bytes(model);
  return plan;
}

}  // namespace shoal::runtime
