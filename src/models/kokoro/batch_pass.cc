#include "models/kokoro/batch_pass.h"

#include "models/kokoro/groups.h"
#include "models/kokoro/layout.h"

namespace shoal::kokoro {

Encoded BatchPass::encode(const TokenBatch& tokens, FunctionRef<void(TensorView logits)> take) const {
  const Config& config = network.config();
  const Rows rows = tokens.layout.rows(ctx, tap, between);
  const int64_t count = tokens.layout.count();
  const Encoded encoded{.prosody = ctx.workspace->alloc(DType::f32, {count, network.prosody_columns()}),
                        .decoder = ctx.workspace->alloc(DType::f32, {count, network.decoder_columns()}),
                        .d = rows.alloc(config.hidden_dim + config.style_dim),
                        .text = rows.alloc(config.hidden_dim)};
  const Workspace::Scope encoding(*ctx.workspace);
  const TokenInputs in{.parts = ops::upload(ctx, tokens.parts).reshape({rows.count(), 3}),
                       .utterance_of = ops::upload(ctx, tokens.utterance_of),
                       .styles = ops::upload(ctx, tokens.styles).reshape({count, 2 * config.style_dim})};
  network.map_styles(ctx, in.styles, &tokens.shared, encoded);
  const TensorView logits = rows.alloc(config.max_dur);
  network.encode(rows, in, encoded, logits);
  take(logits);
  return encoded;
}

std::vector<Sound> BatchPass::render(const Layout& tokens, const Encoded& encoded,
                                     std::span<const uint64_t> seeds, const ops::SourceNoise* noise,
                                     std::span<const Spoken> spoken) const {
  const std::vector<int32_t> counts = frame_counts(spoken);
  const Layout all(counts);
  const int64_t samples_per_frame = network.samples_per_frame();
  std::vector<Sound> sounds;
  for (size_t first = 0; first < counts.size();) {
    const size_t last = tap ? counts.size() : end_of_group(counts, first, kMostFrames);
    const auto from = static_cast<int64_t>(first), to = static_cast<int64_t>(last);
    const FrameBatch frames(tokens, from, spoken.subspan(first, last - first),
                            seeds.subspan(first, last - first), Padding::none);
    const TensorView samples = ctx.workspace->alloc(DType::f32, {frames.layout.total() * samples_per_frame});
    const Workspace::Scope scope(*ctx.workspace);
    Score score{.encoded = encoded,
                .token_of = ops::upload(ctx, frames.token_of),
                .noise = noise_of(frames, noise, all.begin(from))};
    score.encoded.prosody = encoded.prosody.slice(from, to);
    score.encoded.decoder = encoded.decoder.slice(from, to);
    network.render(frames.layout.rows(ctx, tap, between), score, samples);
    const ops::Mark made = ops::mark(ctx);
    for (int64_t u = 0; u < frames.layout.count(); ++u) {
      const int64_t begin = frames.layout.begin(u), end = begin + frames.layout.length(u);
      sounds.push_back({samples.slice(begin * samples_per_frame, end * samples_per_frame), made});
    }
    first = last;
  }
  return sounds;
}

// given: of all frames, of which the batch's first utterance begins at frame `begin`; or null.
ops::SourceNoise BatchPass::noise_of(const FrameBatch& frames, const ops::SourceNoise* given,
                                     int64_t begin) const {
  if (!given) {
    const std::vector<int64_t> bits(frames.seeds.begin(), frames.seeds.end());
    return {.seeds = frames.seeds, .seed_table = ops::upload(ctx, bits)};
  }
  const int64_t first = begin - frames.layout.begin(0), width = network.samples_per_frame();
  return {.given = given->given.slice(first * width, (first + frames.layout.total()) * width)};
}

}  // namespace shoal::kokoro
