#include "runtime/families/kokoro/kokoro_memory.h"

#include <algorithm>
#include <vector>

#include "models/kokoro/batch_pass.h"
#include "ops/device_state.h"
#include "runtime/engine/device_memory.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kCpuFrames = 400, kDeviceFrames = 8000;
constexpr int64_t kFastest = 4;  // speed: this many times as many tokens in the same number of frames

using kokoro::UtteranceSize;

// `count` utterances with so many tokens and frames in all, none of them longer than the longest.
std::vector<UtteranceSize> equal_shares(int64_t count, const UtteranceSize& all,
                                        const UtteranceSize& longest) {
  const UtteranceSize one{
      .tokens = std::clamp<int64_t>(all.tokens / std::max<int64_t>(1, count), 3, longest.tokens),
      .frames = std::clamp<int64_t>(all.frames / std::max<int64_t>(1, count), 1, longest.frames)};
  return std::vector<UtteranceSize>(static_cast<size_t>(count), one);
}

// As many as a batch may hold, of equal groups that are made into sound together, the first one as large as
// groups are.
std::vector<UtteranceSize> full_batch(int64_t utterances, const UtteranceSize& all,
                                      const UtteranceSize& longest) {
  const int64_t group = std::min<int64_t>(all.frames, kokoro::kMostFrames),
                frames = all.frames / group * group;
  const int64_t fewest = std::min(utterances, (group + longest.frames - 1) / longest.frames);
  const int64_t together = std::max(utterances * group / frames, fewest);
  const int64_t tokens = all.tokens * together / utterances;
  std::vector<UtteranceSize> batch = equal_shares(together, {.tokens = tokens, .frames = group}, longest);
  const std::vector<UtteranceSize> others =
      equal_shares(utterances - together, {.tokens = all.tokens - tokens, .frames = frames - group}, longest);
  batch.insert(batch.end(), others.begin(), others.end());
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
  const UtteranceSize longest{.tokens = model.most_phonemes() + 2,
                              .frames = (model.most_phonemes() + 2) * kUsualFramesPerSymbol};
  const int64_t utterances = config.max_batch_size;
  const bool on_device = ops::computes_by_itself(device);
  UtteranceSize all{.frames = frames_of_a_batch(config, on_device)};
  all.tokens = std::min(utterances * longest.tokens, all.frames * kFastest / kUsualFramesPerSymbol);
  all.frames = std::min(utterances * longest.frames, all.frames);
  KokoroMemoryPlan plan{.batch = {.utterances = utterances,
                                  .tokens = std::max(longest.tokens, all.tokens),
                                  .frames = std::max(longest.frames, all.frames)},
                        .weights = kokoro::weight_bytes(model, dtype, device),
                        .available = available};
  for (const auto& batch : {std::vector{longest}, full_batch(utterances, all, longest)})
    plan.workspace = std::max(plan.workspace, kokoro::workspace_bytes(model, batch, dtype, device, threads));
  // Smaller batches may take other kernels of a GPU.
  if (on_device) plan.workspace += op_scratch_bytes(device, threads);
  if (config.cuda_graphs && on_device) plan.steps = kokoro::step_bytes(model);
  return plan;
}

}  // namespace shoal::runtime
