#include "models/kokoro/kokoro.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "models/kokoro/decoder.h"
#include "models/kokoro/generator.h"
#include "models/kokoro/groups.h"
#include "models/kokoro/inventory.h"
#include "models/kokoro/layout.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/memory_sizes.h"
#include "models/kokoro/plbert.h"
#include "models/kokoro/prosody.h"
#include "models/kokoro/style.h"
#include "models/kokoro/text_encoder.h"
#include "ops/embedding.h"
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

std::vector<int32_t> token_counts(std::span<const Utterance> utterances) {
  std::vector<int32_t> counts;
  for (const Utterance& utterance : utterances) counts.push_back(static_cast<int32_t>(utterance.ids.size()));
  return counts;
}

SharedStyles shared_styles(std::span<const Utterance> utterances) {
  std::vector<std::span<const float>> styles;
  for (const Utterance& utterance : utterances) styles.push_back(utterance.style);
  return SharedStyles(styles);
}

// Both halves of every utterance's style.   -> [utterances, 2 * style_dim]
std::vector<float> joined_styles(std::span<const Utterance> utterances) {
  std::vector<float> styles;
  for (const Utterance& utterance : utterances)
    styles.insert(styles.end(), utterance.style.begin(), utterance.style.end());
  return styles;
}

// The tokens of a batch.
struct Tokens {
  explicit Tokens(std::span<const Utterance> utterances) : layout(token_counts(utterances)) {
    const auto total = static_cast<size_t>(layout.total());
    ids.assign(total, 0);
    positions.assign(total, 0);
    for (size_t u = 0; u < utterances.size(); ++u) {
      const auto begin = static_cast<ptrdiff_t>(layout.begin(static_cast<int64_t>(u)));
      std::ranges::copy(utterances[u].ids, ids.begin() + begin);
      std::iota(positions.begin() + begin, positions.begin() + begin + std::ssize(utterances[u].ids), 0);
    }
  }

  Layout layout;
  std::vector<int32_t> ids, positions;  // of every row, 0 in gaps
};

std::vector<int32_t> frame_counts(std::span<const Spoken> spoken) {
  std::vector<int32_t> counts;
  for (const Spoken& one : spoken)
    counts.push_back(std::accumulate(one.durations.begin(), one.durations.end(), int32_t{0}));
  return counts;
}

// The token's row for every frame's; a gap has the first one, which is a gap too. first: the utterance that
// begins the frames.   -> [frames.total()]
std::vector<int32_t> token_of_frame(const Layout& tokens, const Layout& frames, int64_t first,
                                    std::span<const Spoken> spoken) {
  std::vector<int32_t> rows(static_cast<size_t>(frames.total()), 0);
  for (int64_t u = 0; u < frames.count(); ++u) {
    auto to = rows.begin() + frames.begin(u);
    auto token = static_cast<int32_t>(tokens.begin(first + u));
    for (const int32_t duration : spoken[static_cast<size_t>(first + u)].durations) {
      to = std::fill_n(to, duration, token);
      ++token;
    }
  }
  return rows;
}

}  // namespace

class Kokoro::Impl {
 public:
  // front: loads in f32 what comes before the decoder.
  Impl(Loader& front, Loader& back, const Config& config)
      : config_(config),
        dtype_(back.dtype()),
        bert_(front, config),
        text_(front, config),
        durations_(front, prosody_styles_, config),
        pitch_(front, prosody_styles_, config),
        decoder_(back, decoder_styles_, config),
        generator_(back, decoder_styles_, config) {
    prosody_styles_.pack(front);
    decoder_styles_.pack(back);
    bytes_ = front.bytes() + back.bytes();
  }

  const Config& config() const { return config_; }
  DType dtype() const { return dtype_; }
  int64_t bytes() const { return bytes_; }
  int64_t samples_per_frame() const { return 2 * generator_.samples_per_row(); }

  std::vector<Spoken> speak(ops::Context& ctx, std::span<const Utterance> utterances, const Tap* tap,
                            const ops::SourceNoise* noise) const {
    const Workspace::Scope scope(*ctx.workspace);
    const Tokens tokens(utterances);
    const std::vector<float> style_values = joined_styles(utterances);
    const int64_t half = config_.style_dim;
    const TensorView styles =
        ops::upload(ctx, style_values).reshape({static_cast<int64_t>(utterances.size()), 2 * half});
    const Rows rows = tokens.layout.rows(ctx, tap);
    const SharedStyles shared = shared_styles(utterances);
    const TensorView prosody = prosody_styles_.forward(ctx, styles.columns(half, 2 * half), shared);
    const TensorView d = rows.alloc(config_.hidden_dim + half), text = rows.alloc(config_.hidden_dim);

    std::vector<Spoken> spoken = time(rows, tokens, utterances, prosody, styles.columns(half, 2 * half), d);
    text_.forward(rows, tokens.ids, text);

    std::vector<uint64_t> seeds;
    for (const Utterance& utterance : utterances) seeds.push_back(utterance.seed);
    const std::vector<int64_t> seed_bits(seeds.begin(), seeds.end());
    const ops::SourceNoise drawn{.seeds = seeds, .seed_table = ops::upload(ctx, seed_bits)};
    const Score score{.prosody = prosody,
                      .decoder = decoder_styles_.forward(ctx, styles.columns(0, half), shared),
                      .d = d,
                      .text = text,
                      .noise = noise ? *noise : drawn};
    render_groups(ctx, tokens.layout, score, tap, spoken);
    return spoken;
  }

 private:
  // Durations; leaves in d what the pitch is made of.
  std::vector<Spoken> time(const Rows& rows, const Tokens& tokens, std::span<const Utterance> utterances,
                           TensorView affines, TensorView styles, TensorView d) const {
    ops::Context& ctx = *rows.ctx;
    const Workspace::Scope scope(*ctx.workspace);
    const TensorView encoded = d.columns(0, config_.hidden_dim), logits = rows.alloc(durations_.logits());
    bert_.forward(rows, tokens.ids, tokens.positions, encoded);
    rows.tell("d_en", encoded);
    const std::vector<int32_t> owner = tokens.layout.utterance_of_row();
    durations_.forward(rows, affines, styles, ops::upload(ctx, owner), d, logits);
    const Tensor values = ops::to_host(ctx, logits);
    std::vector<Spoken> spoken(utterances.size());
    for (size_t u = 0; u < utterances.size(); ++u) {
      const int64_t begin = tokens.layout.begin(static_cast<int64_t>(u));
      for (int64_t t = 0; t < std::ssize(utterances[u].ids); ++t) {
        spoken[u].durations.push_back(duration(
            {values.view().row<float>(begin + t), static_cast<size_t>(logits.dim(1))}, utterances[u].speed));
      }
    }
    return spoken;
  }

  struct Score {
    TensorView prosody, decoder;  // affines of the utterances
    TensorView d, text;           // of all tokens
    TensorView token_of = {};     // i32 [rows]
    ops::SourceNoise noise;

    // Of utterances [first, last) alone, whose frames lie `begin` frames behind those of all.
    Score of(size_t first, size_t last, int64_t begin, const Layout& frames,
             int64_t samples_per_frame) const {
      Score part = *this;
      const auto from = static_cast<int64_t>(first), to = static_cast<int64_t>(last);
      part.prosody = prosody.slice(from, to);
      part.decoder = decoder.slice(from, to);
      if (noise.given.empty()) {
        part.noise.seeds = noise.seeds.subspan(first, last - first);
        part.noise.seed_table = noise.seed_table.slice(from, to);
      } else {
        part.noise.given =
            noise.given.slice(begin * samples_per_frame, (begin + frames.total()) * samples_per_frame);
      }
      return part;
    }
  };

  // Group by group: what comes after the durations takes a thousand times the memory of what comes before. A
  // tap sees all in one.
  void render_groups(ops::Context& ctx, const Layout& tokens, const Score& score, const Tap* tap,
                     std::vector<Spoken>& spoken) const {
    const std::vector<int32_t> counts = frame_counts(spoken);
    const Layout all(counts);
    std::vector<TensorView> sounds;  // of each utterance
    for (size_t first = 0; first < counts.size();) {
      const size_t last = tap ? counts.size() : end_of_group(counts, first, kMostFrames);
      const auto from = static_cast<ptrdiff_t>(first), to = static_cast<ptrdiff_t>(last);
      const Layout frames({counts.begin() + from, counts.begin() + to});
      const TensorView samples = ctx.workspace->alloc(DType::f32, {frames.total() * samples_per_frame()});
      const Workspace::Scope scope(*ctx.workspace);
      const std::vector<int32_t> source = token_of_frame(tokens, frames, from, spoken);
      Score part = score.of(first, last, all.begin(from) - frames.begin(0), frames, samples_per_frame());
      part.token_of = ops::upload(ctx, source);
      render(frames.rows(ctx, tap), part, samples);
      for (int64_t u = 0; u < frames.count(); ++u) {
        const int64_t begin = frames.begin(u);
        sounds.push_back(
            samples.slice(begin * samples_per_frame(), (begin + frames.length(u)) * samples_per_frame()));
      }
      first = last;
    }
    for (size_t u = 0; u < sounds.size(); ++u) {
      spoken[u].samples.resize(static_cast<size_t>(sounds[u].elements()));
      ops::download(ctx, sounds[u], spoken[u].samples.data());
    }
  }

  // samples: f32 [rows * samples_per_frame()]
  void render(const Rows& rows, const Score& score, TensorView samples) const {
    ops::Context& ctx = *rows.ctx;
    const Workspace::Scope scope(*ctx.workspace);
    const Rows twice = rows.at(2);
    const TensorView f0 = twice.alloc(1), energy = twice.alloc(1), features = twice.alloc(decoder_.outputs());
    {
      const Workspace::Scope pitch(*ctx.workspace);
      const TensorView en = rows.alloc(score.d.dim(1));
      ops::gather_rows(ctx, score.d, score.token_of, en);
      rows.tell("en", en);
      pitch_.forward(rows, score.prosody, en, f0, energy);
    }
    const TensorView harmonics = generator_.excite(twice, f0, score.noise);
    {
      const Workspace::Scope decoding(*ctx.workspace);
      const TensorView asr = rows.alloc(score.text.dim(1));
      ops::gather_rows(ctx, score.text, score.token_of, asr);
      rows.tell("asr", asr);
      decoder_.forward(rows, score.decoder, asr, f0, energy, features);
    }
    generator_.forward(twice, score.decoder, features, harmonics, samples);
  }

  const Config config_;
  const DType dtype_;
  StyleTable prosody_styles_{config_.style_dim}, decoder_styles_{config_.style_dim};
  PlBert bert_;
  TextEncoder text_;
  DurationPredictor durations_;
  PitchPredictor pitch_;
  Decoder decoder_;
  Generator generator_;
  int64_t bytes_ = 0;
};

Kokoro::Kokoro(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Kokoro::Kokoro(Kokoro&&) noexcept = default;
Kokoro& Kokoro::operator=(Kokoro&&) noexcept = default;
Kokoro::~Kokoro() = default;

Kokoro Kokoro::from(WeightSource& source, const Config& config, ops::Context& ctx, DType dtype) {
  Loader front(source, ctx, DType::f32), back(source, ctx, dtype);
  return Kokoro(std::make_unique<const Impl>(front, back, config));
}

Kokoro Kokoro::load(const weights::Checkpoint& checkpoint, const Config& config, ops::Context& ctx,
                    DType dtype) {
  check_tensors(checkpoint, config);
  return from(*read_weights(checkpoint, *ctx.team), config, ctx, dtype);
}

Kokoro Kokoro::random(const Config& config, ops::Context& ctx, DType dtype, uint64_t seed) {
  return from(*random_weights(seed, *ctx.team), config, ctx, dtype);
}

const Config& Kokoro::config() const { return impl_->config(); }
DType Kokoro::dtype() const { return impl_->dtype(); }
int64_t Kokoro::weight_bytes() const { return impl_->bytes(); }
int64_t Kokoro::samples_per_frame() const { return impl_->samples_per_frame(); }

std::vector<Spoken> Kokoro::speak(ops::Context& ctx, std::span<const Utterance> utterances, const Tap* tap,
                                  const ops::SourceNoise* noise) const {
  CHECK(!utterances.empty(), "speak: no utterance");
  for (const Utterance& utterance : utterances) check(config(), utterance);
  return impl_->speak(ctx, utterances, tap, noise);
}

}  // namespace shoal::kokoro
