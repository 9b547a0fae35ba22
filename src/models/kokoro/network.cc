#include "models/kokoro/network.h"

#include "ops/embedding.h"

namespace shoal::kokoro {
namespace {

// What `make` makes; `bytes` grows by what that loads.
template <typename Make>
auto counted(const Loader& loader, int64_t& bytes, const Make& make) {
  struct Counter {
    const Loader& loader;
    int64_t& bytes;
    const int64_t before = loader.bytes();
    ~Counter() { bytes += loader.bytes() - before; }
  } const counter{loader, bytes};
  return make();
}

}  // namespace

Network::Network(Loader& front, Loader& back, const Config& config)
    : config_(config),
      dtype_(back.dtype()),
      bert_(counted(front, bytes_.plbert, [&] { return PlBert(front, config); })),
      durations_(
          counted(front, bytes_.prosody, [&] { return DurationPredictor(front, prosody_styles_, config); })),
      pitch_(counted(front, bytes_.prosody, [&] { return PitchPredictor(front, prosody_styles_, config); })),
      decoder_(counted(back, bytes_.decoder, [&] { return Decoder(back, decoder_styles_, config); })),
      generator_(counted(back, bytes_.generator,
                         [&] {
                           decoders_style_columns_ = decoder_styles_.columns();
                           return Generator(back, decoder_styles_, config);
                         })),
      text_(counted(front, bytes_.text_encoder, [&] { return TextEncoder(front, config); })) {
  int64_t styles = 0;
  counted(front, bytes_.prosody, [&] { return prosody_styles_.pack(front), 0; });
  counted(back, styles, [&] { return decoder_styles_.pack(back), 0; });
  // One matrix of both parts.
  const int64_t of_decoder = styles * decoders_style_columns_ / decoder_styles_.columns();
  bytes_.decoder += of_decoder;
  bytes_.generator += styles - of_decoder;
}

void Network::map_styles(ops::Context& ctx, TensorView styles, const SharedStyles* shared,
                         const Encoded& encoded) const {
  prosody_styles_.forward(ctx, predictor_half(styles), shared, encoded.prosody);
  decoder_styles_.forward(ctx, decoder_half(styles), shared, encoded.decoder);
}

void Network::encode(const Rows& rows, const TokenInputs& in, const Encoded& encoded,
                     TensorView logits) const {
  const TensorView d = encoded.d.slice(0, rows.count()), text = encoded.text.slice(0, rows.count());
  const TensorView spoken = d.columns(0, config_.hidden_dim);
  bert_.forward(rows, in.parts, spoken);
  rows.tell("d_en", spoken);
  durations_.forward(rows, encoded.prosody, predictor_half(in.styles), in.utterance_of, d, logits);
  text_.forward(rows, in.parts, text);
}

void Network::render(const Rows& rows, const Score& score, TensorView samples) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const Encoded& encoded = score.encoded;
  const Rows twice = rows.at(2);
  const TensorView f0 = twice.alloc(1), energy = twice.alloc(1), features = twice.alloc(decoder_.outputs());
  {
    const Workspace::Scope pitch(*ctx.workspace);
    const TensorView en = rows.alloc(encoded.d.dim(1));
    ops::gather_rows(ctx, encoded.d, score.token_of, en);
    rows.tell("en", en);
    pitch_.forward(rows, encoded.prosody, en, f0, energy);
  }
  const TensorView harmonics = generator_.excite(twice, f0, score.noise);
  {
    const Workspace::Scope decoding(*ctx.workspace);
    const TensorView asr = rows.alloc(encoded.text.dim(1));
    ops::gather_rows(ctx, encoded.text, score.token_of, asr);
    rows.tell("asr", asr);
    decoder_.forward(rows, encoded.decoder, asr, f0, energy, features);
  }
  generator_.forward(twice, encoded.decoder, features, harmonics, samples);
}

}  // namespace shoal::kokoro
