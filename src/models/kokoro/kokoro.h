// Kokoro: phonemes -> sound, many utterances at once. Maths and steps: MODEL.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/rows.h"
#include "ops/context.h"
#include "ops/harmonic_source.h"
#include "tensor/dtype.h"
#include "weights/checkpoint.h"

namespace shoal::weights {
class TensorSource;
}

namespace shoal::kokoro {

class StepMemory;

// An utterance to speak, with its style and speed.
struct Utterance {
  std::span<const int32_t>
      ids;  // phonemes with the pad 0 at both ends; at least 3, at most Config::max_positions
  std::span<const float> style;  // [2 * style_dim]: the decoder's half, then the predictor's
  float speed = 1;               // above 0: 2 is twice as fast
  uint64_t seed = 0;             // of the noise: the only thing that is drawn
};

struct Spoken {
  int64_t frames() const;          // all of it
  std::vector<int32_t> durations;  // frames of each id
  std::vector<float> samples;      // samples_per_frame() for each frame; may pass +-1
};

// Immutable once loaded; every method is const and may run on several threads at once, each with its own
// Context. The sound of an utterance does not depend on the others of its batch: bit for bit.
class Kokoro {
 public:
  // dtype: of the decoder's and generator's matrices: f32, bf16 or, if the device has such products, f16. The
  // layers before them (durations depend on those) are f32, and so are sums, norms, LSTM states and the
  // source. The checkpoint's names are already normalised and it may be closed afterwards. Throws Error:
  // not_found, corrupt_file, naming the tensors that are missing, misshapen or unknown (inventory.h).
  static Kokoro load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                     DType dtype);
  // Weights from wherever they come (weights/source.h).
  static Kokoro from(weights::TensorSource& source, const Config& config, ops::Context& ctx, DType dtype);
  // Random weights of sensible size, for benchmarks and tests: a pure function of (config, seed).
  static Kokoro random(const Config& config, ops::Context& ctx, DType dtype, uint64_t seed);

  Kokoro(Kokoro&&) noexcept;
  Kokoro& operator=(Kokoro&&) noexcept;
  ~Kokoro();

  const Config& config() const;
  DType dtype() const;
  int64_t weight_bytes() const;
  int64_t sample_rate_hz() const { return kSampleRateHz; }
  int64_t samples_per_frame() const;

  // At least one utterance. A tap sees all of them. `noise`: replaces the seeds' noise, for tests. `between`
  // is not called on a device that computes asynchronously, because it may still be at work on an abandoned
  // pass. Throws Error: invalid_argument (an invalid utterance); any exception of `between`.
  std::vector<Spoken> speak(ops::Context& ctx, std::span<const Utterance> utterances,
                            const Tap* tap = nullptr, const ops::SourceNoise* noise = nullptr,
                            const BetweenStages* between = nullptr) const;

  // Memory for speak() in this context, for one call at a time. Throws Error(resource_exhausted).
  std::unique_ptr<StepMemory> step_memory(ops::Context& ctx) const;
  // The same sound. A single utterance (step_memory.h) runs in steps over fixed memory; if the context has
  // CUDA graphs (ops/step_graph.h), they are replayed. Not inside a scope of ctx.workspace. memory: of this
  // model and context, destroyed before them. Throws as above.
  std::vector<Spoken> speak(ops::Context& ctx, const StepMemory& memory,
                            std::span<const Utterance> utterances) const;

 private:
  class Impl;
  explicit Kokoro(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace shoal::kokoro
