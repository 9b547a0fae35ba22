#include "models/kokoro/memory_sizes.h"

#include <vector>

#include "models/kokoro/batch.h"
#include "models/kokoro/batch_pass.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/network.h"
#include "models/kokoro/step_memory.h"
#include "ops/planning_context.h"
#include "ops/step_graph.h"

namespace shoal::kokoro {
namespace {

// All parts of the model, without memory.
class SizedNetwork {
 public:
  SizedNetwork(const Config& config, DType dtype, Device device)
      : planning_(device),
        front_(names_, planning_.context(), DType::f32),
        back_(names_, planning_.context(), dtype),
        network_(front_, back_, config) {}
  const Network* operator->() const { return &network_; }
  const Network& operator*() const { return network_; }

 private:
  weights::NamesOnly names_;
  ops::PlanningContext planning_;
  Loader front_, back_;
  Network network_;
};

}  // namespace

WeightBytes weight_bytes(const Config& config, DType dtype, Device device) {
  return SizedNetwork(config, dtype, device)->weight_bytes();
}

StepBytes step_bytes(const Config& config) {
  constexpr int64_t kTokenLaunches = 165, kFrameLaunches = 283;  // at the published sizes
  const int64_t launches = Layout::recorded_sizes(config.max_positions) * kTokenLaunches +
                           Layout::recorded_sizes(StepMemory::kMostRecordedFrames) * kFrameLaunches;
  return {.memory = StepMemory::bytes_of(*SizedNetwork(config, DType::f32, {})),
          .recordings = launches * ops::kBytesOfLaunch};
}

int64_t workspace_bytes(const Config& config, std::span<const UtteranceSize> batch, DType dtype,
                        Device device, int threads) {
  const SizedNetwork network(config, dtype, device);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> styles;
  std::vector<Utterance> utterances;
  std::vector<Spoken> spoken;
  for (const UtteranceSize& size : batch) {
    const bool own = styles.empty() || styles.size() + 1 < batch.size();
    ids.emplace_back(static_cast<size_t>(size.tokens));
    styles.emplace_back(static_cast<size_t>(2 * config.style_dim),
                        own ? static_cast<float>(styles.size()) : styles.back()[0]);
    utterances.push_back({.ids = ids.back(), .style = styles.back()});
    spoken.push_back({.durations = {static_cast<int32_t>(size.frames)}, .samples = {}});
  }
  ops::PlanningContext planning(device, threads);
  const Workspace::Scope scope(*planning.context().workspace);
  const TokenBatch tokens(config, utterances, Padding::none);
  const BatchPass pass{planning.context(), *network};
  const Encoded encoded = pass.encode(tokens, [](TensorView) {});
  pass.render(tokens.layout, encoded, std::vector<uint64_t>(batch.size()), nullptr, spoken);
  return planning.peak_bytes();
}

}  // namespace shoal::kokoro
