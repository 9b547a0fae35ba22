// Kokoro: phonemes -> sound, many utterances at a time. Maths and steps: MODEL.md.
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

namespace shoal::kokoro {

class StepMemory;
class WeightSource;

// What to say, and how.
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

// Immutable once loaded; every method is const and may run on several threads at a time, each with its own
// Context. What an utterance sounds like does not depend on the others of its batch: bit for bit.
class Kokoro {
 public:
  // dtype: f32, bf16 or, where the device has such products, f16, of the decoder's and generator's matrices.
  // What comes before (durations depend on it) is f32, and so are sums, norms, LSTMs' states and the source.
  // The checkpoint's names are already normalised and it may be closed afterwards. Throws Error:
  // not_found, corrupt_file, naming the tensors that are missing, misshapen or unknown (inventory.h).
  static Kokoro load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                     DType dtype);
  // Weights from wherever they come (weight_source.h).
  static Kokoro from(WeightSource& source, const Config& config, ops::Context& ctx, DType dtype);
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

  // At least one utterance. A tap sees all of them. `noise`: instead of the seeds', for tests. `between`: not
  // where the device computes by itself, which may still be at work on what is given up.
  // Throws Error: invalid_argument (an utterance that is not as above); what `between` throws.
  std::vector<Spoken> speak(ops::Context& ctx, std::span<const Utterance> utterances,
                            const Tap* tap = nullptr, const ops::SourceNoise* noise = nullptr,
                            const BetweenStages* between = nullptr) const;

  // Memory for speak() in this context, one call at a time. Throws Error(resource_exhausted).
  std::unique_ptr<StepMemory> step_memory(ops::Context& ctx) const;
  // The same sound; that of an utterance alone (step_memory.h) by steps over memory that stays where it is:
  // where the context records steps (ops/step_graph.h), they are replayed. Not inside of a scope of
  // ctx.workspace.   memory: of this model and context, and it goes before them. Throws as above.
  std::vector<Spoken> speak(ops::Context& ctx, const StepMemory& memory,
                            std::span<const Utterance> utterances) const;

 private:
  class Impl;
  explicit Kokoro(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace shoal::kokoro
