#include "models/kokoro/kokoro.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "models/kokoro/batch.h"
#include "models/kokoro/batch_pass.h"
#include "models/kokoro/inventory.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/network.h"
#include "models/kokoro/prosody.h"
#include "models/kokoro/step_memory.h"
#include "ops/transfer.h"

namespace shoal::kokoro {
namespace {

void check(const Config& config, const Utterance& utterance) {
  const auto tokens = static_cast<int64_t>(utterance.ids.size());
  if (tokens < 3 || tokens > config.max_positions)
    fail(ErrorCode::invalid_argument, "utterance: expected 1 to ", config.max_positions - 2,
         " phonemes, got ", tokens - 2);
  for (const int32_t id : utterance.ids) {
    if (id < 0 || id >= config.n_token)
      fail(ErrorCode::invalid_argument, "utterance: expected phoneme ids below ", config.n_token, ", got ",
           id);
  }
  if (static_cast<int64_t>(utterance.style.size()) != 2 * config.style_dim)
    fail(ErrorCode::invalid_argument, "utterance: expected a style of ", 2 * config.style_dim,
         " values, got ", utterance.style.size());
  if (!(utterance.speed > 0))
    fail(ErrorCode::invalid_argument, "speed: expected more than 0, got ", utterance.speed);
}

void check(const Config& config, std::span<const Utterance> utterances) {
  CHECK(!utterances.empty(), "speak: no utterance");
  for (const Utterance& utterance : utterances) check(config, utterance);
}

std::vector<uint64_t> seeds_of(std::span<const Utterance> utterances) {
  std::vector<uint64_t> seeds;
  for (const Utterance& utterance : utterances) seeds.push_back(utterance.seed);
  return seeds;
}

// The steps that StepKeys distinguish.
enum RecordedStep : int64_t { kTokenStep, kFrameStep };

}  // namespace

class Kokoro::Impl {
 public:
  Impl(Loader& front, Loader& back, const Config& config) : network_(front, back, config) {}

  const Network& network() const { return network_; }

  std::vector<Spoken> speak(ops::Context& ctx, std::span<const Utterance> utterances, const Tap* tap,
                            const ops::SourceNoise* noise, const BetweenStages* between) const {
    const Workspace::Scope scope(*ctx.workspace);
    const TokenBatch tokens(network_.config(), utterances, Padding::none);
    const BatchPass pass{ctx, network_, tap, between};
    std::vector<Spoken> spoken;
    const Encoded encoded = pass.encode(tokens, [&](TensorView logits) {
      spoken = durations_of(ctx, tokens.layout, ops::to_host(ctx, logits), utterances);
    });
    fetch(ctx, pass.render(tokens.layout, encoded, seeds_of(utterances), noise, spoken), spoken);
    return spoken;
  }

  std::vector<Spoken> speak(ops::Context& ctx, const StepMemory& memory,
                            std::span<const Utterance> utterances) const {
    if (!memory.takes(utterances)) return speak(ctx, utterances, nullptr, nullptr, nullptr);
    const TokenBatch tokens(network_.config(), utterances, Padding::recorded);
    const Encoded encoded = memory.encoded();
    const TokenStep step = memory.write(tokens);
    ops::run_step(ctx, key(memory, kTokenStep, tokens.layout), [&] {
      const Workspace::Scope scope(*ctx.workspace);
      memory.bring(ctx, step);
      network_.map_styles(ctx, step.inputs.styles, nullptr, encoded);
      network_.encode(tokens.layout.rows(ctx, step.tables), step.inputs, encoded, step.logits);
      memory.fetch(ctx, step);
    });
    ops::synchronize(ctx);
    std::vector<Spoken> spoken = durations_of(ctx, tokens.layout, memory.host_logits(step), utterances);
    if (memory.takes(spoken[0])) {
      render(ctx, memory, tokens.layout, encoded, seeds_of(utterances), spoken);
    } else {
      const Workspace::Scope scope(*ctx.workspace);
      const BatchPass pass{ctx, network_};
      fetch(ctx, pass.render(tokens.layout, encoded, seeds_of(utterances), nullptr, spoken), spoken);
    }
    return spoken;
  }

 private:
  ops::StepKey key(const StepMemory& memory, RecordedStep step, const Layout& layout) const {
    return {.owner = this, .step = step, .rows = layout.total(), .sequences = memory.serial()};
  }

  // logits: in host memory.   -> for each utterance its durations, and no samples yet
  static std::vector<Spoken> durations_of(const ops::Context& ctx, const Layout& layout, TensorView logits,
                                          std::span<const Utterance> utterances) {
    std::vector<Spoken> spoken(utterances.size());
    ctx.team->parallel_for(std::ssize(utterances), 1, [&](int64_t u, int64_t, int) {
      const Utterance& utterance = utterances[static_cast<size_t>(u)];
      std::vector<int32_t>& durations = spoken[static_cast<size_t>(u)].durations;
      for (int64_t t = 0; t < std::ssize(utterance.ids); ++t)
        durations.push_back(duration(
            {logits.row<float>(layout.begin(u) + t), static_cast<size_t>(logits.dim(1))}, utterance.speed));
    });
    return spoken;
  }

  // While a GPU still computes, the host's memory is made ready and the sound of earlier groups comes.
  static void fetch(ops::Context& ctx, std::span<const Sound> sounds, std::vector<Spoken>& spoken) {
    for (size_t u = 0; u < sounds.size(); ++u)
      spoken[u].samples.resize(static_cast<size_t>(sounds[u].samples.elements()));
    for (size_t u = 0; u < sounds.size(); ++u)
      ops::download(ctx, sounds[u].made, sounds[u].samples, spoken[u].samples.data());
  }

  // One utterance, by a recorded step.
  void render(ops::Context& ctx, const StepMemory& memory, const Layout& tokens, const Encoded& encoded,
              std::span<const uint64_t> seeds, std::vector<Spoken>& spoken) const {
    const FrameBatch frames(tokens, 0, spoken, seeds, Padding::recorded);
    const FrameStep step = memory.write(frames);
    ops::run_step(ctx, key(memory, kFrameStep, frames.layout), [&] {
      const Workspace::Scope scope(*ctx.workspace);
      memory.bring(ctx, step);
      network_.render(frames.layout.rows(ctx, step.tables),
                      {.encoded = encoded,
                       .token_of = step.token_of,
                       .noise = {.seeds = frames.seeds, .seed_table = step.seeds}},
                      step.samples);
      memory.fetch(ctx, step);
    });
    std::vector<float>& samples = spoken[0].samples;
    samples.resize(static_cast<size_t>(spoken[0].frames() * samples_per_frame()));  // while a GPU computes
    ops::synchronize(ctx);
    const auto first = static_cast<size_t>(frames.layout.begin(0) * samples_per_frame());
    std::ranges::copy(memory.host_samples().subspan(first, samples.size()), samples.begin());
  }

  int64_t samples_per_frame() const { return network_.samples_per_frame(); }

  const Network network_;
};

int64_t Spoken::frames() const { return std::accumulate(durations.begin(), durations.end(), int64_t{0}); }

Kokoro::Kokoro(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Kokoro::Kokoro(Kokoro&&) noexcept = default;
Kokoro& Kokoro::operator=(Kokoro&&) noexcept = default;
Kokoro::~Kokoro() = default;

Kokoro Kokoro::from(weights::TensorSource& source, const Config& config, ops::Context& ctx, DType dtype) {
  Loader front(source, ctx, DType::f32), back(source, ctx, dtype);
  return Kokoro(std::make_unique<const Impl>(front, back, config));
}

Kokoro Kokoro::load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                    DType dtype) {
  check_tensors(checkpoint, config);
  return from(*weights::read_weights(checkpoint, *ctx.team), config, ctx, dtype);
}

Kokoro Kokoro::random(const Config& config, ops::Context& ctx, DType dtype, uint64_t seed) {
  return from(*random_weights(seed, *ctx.team), config, ctx, dtype);
}

const Config& Kokoro::config() const { return impl_->network().config(); }
DType Kokoro::dtype() const { return impl_->network().dtype(); }
int64_t Kokoro::weight_bytes() const { return impl_->network().weight_bytes().total(); }
int64_t Kokoro::samples_per_frame() const { return impl_->network().samples_per_frame(); }

std::vector<Spoken> Kokoro::speak(ops::Context& ctx, std::span<const Utterance> utterances, const Tap* tap,
                                  const ops::SourceNoise* noise, const BetweenStages* between) const {
  check(config(), utterances);
  return impl_->speak(ctx, utterances, tap, noise, between);
}

std::unique_ptr<StepMemory> Kokoro::step_memory(ops::Context& ctx) const {
  return std::make_unique<StepMemory>(ctx, impl_->network());
}

std::vector<Spoken> Kokoro::speak(ops::Context& ctx, const StepMemory& memory,
                                  std::span<const Utterance> utterances) const {
  check(config(), utterances);
  return impl_->speak(ctx, memory, utterances);
}

}  // namespace shoal::kokoro
