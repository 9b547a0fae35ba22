#include "bench/model_figures.h"

#include <algorithm>
#include <numeric>

#include "base/philox.h"

namespace shoal::bench {
namespace {

constexpr int64_t kPageSize = 32;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double compute_limit(const MachineLimits& limits, DType dtype) {
  return dtype == DType::bf16 ? limits.bf16_gflop_per_s : limits.f32_gflop_per_s;
}

// Columns of a plausible prompt: semantic tokens with codes.
std::vector<int32_t> random_columns(const dual_ar::Config& config, int64_t columns, uint64_t seed) {
  std::vector<int32_t> values;
  for (int64_t column = 0; column < columns; ++column) {
    const auto draw = [&](int64_t i) {
      return philox4x32(seed, {static_cast<uint32_t>(column), static_cast<uint32_t>(i), 0, 0})[0];
    };
    const int32_t first = static_cast<int32_t>(draw(0) % static_cast<uint32_t>(config.codebook_size));
    values.push_back(config.semantic_begin + first);
    values.push_back(first);
    for (int64_t k = 1; k < config.num_codebooks; ++k) {
      values.push_back(static_cast<int32_t>(draw(k) % static_cast<uint32_t>(config.residual_codes())));
    }
  }
  return values;
}

// A batch of equal sequences that share the pages of one prompt and own the page after it.
class DecodeBatch {
 public:
  DecodeBatch(const dual_ar::DualAr& model, const ModelBenchOptions& options, int batch)
      : model_(model),
        batch_(batch),
        shared_pages_(options.context_columns / kPageSize),
        cache_(model.config(), shared_pages_ + batch * kPrivatePages, kPageSize, options.dtype),
        hidden_(DType::f32, {batch, model.config().slow.dim}),
        frames_(static_cast<size_t>(batch * model.config().columns())) {
    dual_ar::Sampling sampling;
    for (int sequence = 0; sequence < batch; ++sequence) {
      sampling.seed = options.seed + static_cast<uint64_t>(sequence);
      utterances_.emplace_back(model.config(), sampling, options.context_columns, kPrivatePages * kPageSize);
      for (int64_t page = 0; page < shared_pages_; ++page) page_table_.push_back(static_cast<int32_t>(page));
      for (int64_t page = 0; page < kPrivatePages; ++page) {
        page_table_.push_back(static_cast<int32_t>(shared_pages_ + sequence * kPrivatePages + page));
      }
    }
  }

  void prefill(ops::Context& ctx, const ModelBenchOptions& options) {
    const std::vector<int32_t> columns =
        random_columns(model_.config(), options.context_columns, options.seed);
    std::vector<int32_t> offsets(static_cast<size_t>(batch_) + 1, options.context_columns);
    offsets[0] = 0;
    std::vector<int32_t> positions(static_cast<size_t>(options.context_columns));
    std::iota(positions.begin(), positions.end(), 0);
    model_.forward_slow(ctx, plan(offsets, positions), columns, cache_, hidden_);
    for (int sequence = 1; sequence < batch_; ++sequence) {
      std::copy_n(hidden_.as<float>(), hidden_.dim(1), hidden_.view().row<float>(sequence));
    }
  }

  // One frame of every sequence, then its column through the slow transformer.
  void step(ops::Context& ctx) {
    std::vector<dual_ar::FrameRequest> requests;
    for (const dual_ar::Utterance& utterance : utterances_) requests.push_back(utterance.next_request());
    model_.generate_frames(ctx, hidden_, requests, frames_);
    const size_t width = static_cast<size_t>(model_.config().columns());
    std::vector<int32_t> offsets(static_cast<size_t>(batch_) + 1), positions(static_cast<size_t>(batch_));
    std::iota(offsets.begin(), offsets.end(), 0);
    for (size_t sequence = 0; sequence < utterances_.size(); ++sequence) {
      // Random weights may draw the end token: a timed sequence goes on with a semantic token instead.
      int32_t& token = frames_[sequence * width];
      if (token == model_.config().im_end) token = model_.config().semantic_begin;
      utterances_[sequence].accept(std::span(frames_).subspan(sequence * width, width));
      positions[sequence] = static_cast<int32_t>(utterances_[sequence].next_position());
    }
    model_.forward_slow(ctx, plan(offsets, positions), frames_, cache_, hidden_);
  }

 private:
  static constexpr int64_t kPrivatePages = 2;

  ops::BatchPlan plan(std::span<const int32_t> offsets, std::span<const int32_t> positions) const {
    return {.rows = {offsets},
            .positions = positions,
            .page_table = page_table_,
            .pages_per_sequence = shared_pages_ + kPrivatePages,
            .page_size = kPageSize};
  }

  const dual_ar::DualAr& model_;
  int batch_;
  int64_t shared_pages_;
  dual_ar::KvCache cache_;
  Tensor hidden_;
  std::vector<int32_t> frames_, page_table_;
  std::vector<dual_ar::Utterance> utterances_;
};

double seconds_of(const std::function<void()>& work) {
  const double start = now_s();
  work();
  return now_s() - start;
}

}  // namespace

std::vector<DecodeFigures> bench_decode(const dual_ar::DualAr& model, const MachineLimits& limits,
                                        const ModelBenchOptions& options, ops::Context& ctx) {
  constexpr int kWarmUp = 3;
  std::vector<DecodeFigures> figures;
  for (int batch : options.batches) {
    options.on_part(concat("decode, batch ", batch));
    DecodeBatch sequences(model, options, batch);
    sequences.prefill(ctx, options);
    for (int i = 0; i < kWarmUp; ++i) sequences.step(ctx);
    std::vector<double> seconds;
    for (int i = 0; i < options.decode_frames; ++i)
      seconds.push_back(seconds_of([&] { sequences.step(ctx); }));
    const double step_s = median(seconds);
    const double kv_bytes =
        static_cast<double>(dual_ar::KvCache::bytes_per_token(model.config(), options.dtype)) *
        options.context_columns;  // shared pages: read from memory once at best
    const double gb = (static_cast<double>(model.bytes_per_frame()) + kv_bytes) / 1e9;
    figures.push_back({.batch = batch,
                       .step_ms = step_s * 1e3,
                       .frames_per_s = batch / step_s,
                       .gb_read = gb,
                       .share_of_read_limit = gb / step_s / limits.read_gb_per_s});
  }
  return figures;
}

PrefillFigures bench_prefill(const dual_ar::DualAr& model, const MachineLimits& limits,
                             const ModelBenchOptions& options, ops::Context& ctx) {
  options.on_part("prefill");
  const dual_ar::Config& config = model.config();
  const int64_t pages = (options.prefill_columns + kPageSize - 1) / kPageSize;
  dual_ar::KvCache cache(config, pages, kPageSize, options.dtype);
  const Tensor hidden(DType::f32, {1, config.slow.dim});
  const std::vector<int32_t> columns = random_columns(config, options.prefill_columns, options.seed);
  const std::vector<int32_t> offsets = {0, options.prefill_columns};
  std::vector<int32_t> positions(static_cast<size_t>(options.prefill_columns)),
      table(static_cast<size_t>(pages));
  std::iota(positions.begin(), positions.end(), 0);
  std::iota(table.begin(), table.end(), 0);
  const ops::BatchPlan plan{.rows = {offsets},
                            .positions = positions,
                            .page_table = table,
                            .pages_per_sequence = pages,
                            .page_size = kPageSize};
  double best_s = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    best_s = std::min(best_s, seconds_of([&] { model.forward_slow(ctx, plan, columns, cache, hidden); }));
  }
  const double parameters =
      static_cast<double>(config.slow_layers) *
      static_cast<double>(config.slow.dim * (config.slow.qkv_width() + config.slow.attention_width()) +
                          3 * config.slow.dim * config.slow.hidden);
  const double gflop = 2 * parameters * options.prefill_columns / 1e9;
  return {.columns = options.prefill_columns,
          .columns_per_s = options.prefill_columns / best_s,
          .gflop_per_s = gflop / best_s,
          .share_of_compute_limit = gflop / best_s / compute_limit(limits, options.dtype)};
}

CodecFigures bench_codec(const dac::Codec& codec, const MachineLimits& limits,
                         const ModelBenchOptions& options, ops::Context& ctx) {
  const dac::Config& config = codec.config();
  const double audio_s = options.codec_frames / config.frames_per_second();
  std::vector<int32_t> codes(static_cast<size_t>(options.codec_frames * config.num_codebooks()));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<int32_t>(philox4x32(options.seed, {static_cast<uint32_t>(i), 1, 0, 0})[0] % 1024);
  options.on_part("codec decode");
  std::vector<float> sound;
  double decode_s = 1e9;
  for (int repeat = 0; repeat < 2; ++repeat)
    decode_s = std::min(decode_s, seconds_of([&] { sound = codec.decode(ctx, codes); }));
  options.on_part("codec encode");
  double encode_s = 1e9;
  for (int repeat = 0; repeat < 2; ++repeat)
    encode_s = std::min(encode_s, seconds_of([&] { codec.encode(ctx, sound); }));

  dac::CodecStatePool pool(codec, ctx, 1);
  dac::CodecStream stream(pool);
  dac::CodecStream* const streams[] = {&stream};
  const std::vector<int32_t> one_frame = {0, 1};
  sound.resize(static_cast<size_t>(config.samples_per_frame()));
  std::vector<double> first_frames;
  for (int repeat = 0; repeat < 8; ++repeat) {
    stream.reset();
    first_frames.push_back(seconds_of([&] {
      codec.decode_streams(ctx, streams, {one_frame},
                           std::span(codes).first(static_cast<size_t>(config.num_codebooks())), sound);
    }));
  }
  const double limit = compute_limit(limits, codec.dtype());
  const double decode_gflop_per_s = kCodecDecodeGflopPerSecond * audio_s / decode_s;
  const double encode_gflop_per_s = kCodecEncodeGflopPerSecond * audio_s / encode_s;
  return {.decode_times_real_time = audio_s / decode_s,
          .encode_times_real_time = audio_s / encode_s,
          .decode_gflop_per_s = decode_gflop_per_s,
          .encode_gflop_per_s = encode_gflop_per_s,
          .decode_share_of_compute_limit = decode_gflop_per_s / limit,
          .encode_share_of_compute_limit = encode_gflop_per_s / limit,
          .first_frame_ms = median(first_frames) * 1e3};
}

ModelFigures bench_s1_mini(const MachineLimits& limits, const ModelBenchOptions& options, ops::Context& ctx) {
  ModelFigures figures{.name = "s1-mini, random weights", .dtype = std::string(name_of(options.dtype))};
  reset_peak_resident();
  options.on_part("making random weights");
  const dual_ar::DualAr model =
      dual_ar::DualAr::random(dual_ar::Config::s1_mini(), ctx, {.dtype = options.dtype}, options.seed);
  figures.language_model_bytes = model.memory().total();
  figures.decode = bench_decode(model, limits, options, ctx);
  figures.prefill = bench_prefill(model, limits, options, ctx);
  options.on_part("making a random codec");
  const dac::Codec codec =
      dac::Codec::random(dac::Config::published(), ctx, options.dtype, dac::Parts::both, options.seed);
  figures.codec_bytes = codec.memory().total();
  figures.codec = bench_codec(codec, limits, options, ctx);
  figures.peak_resident_bytes = peak_resident_bytes();
  return figures;
}

}  // namespace shoal::bench
