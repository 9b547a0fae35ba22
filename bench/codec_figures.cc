#include <algorithm>

#include "base/philox.h"
#include "bench/model_figures.h"
#include "bench/timing.h"

namespace shoal::bench {
namespace {

// The first pass of a size grows the workspace, the second is recorded, the third is the first replay.
constexpr int kCodecWarmUp = 4;

std::vector<int32_t> random_codes(const dac::Config& config, int64_t frames, uint64_t seed) {
  std::vector<int32_t> codes(static_cast<size_t>(frames * config.num_codebooks()));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<int32_t>(philox4x32(seed, {static_cast<uint32_t>(i), 1, 0, 0})[0] % 1024);
  return codes;
}

// Seconds of a pass with `frames` new frames of each of `count` streams that are under way.
double pass_seconds(const dac::Codec& codec, const ModelBenchOptions& options, int count, int frames,
                    int times, ops::Context& ctx) {
  const dac::Config& config = codec.config();
  const RecordingsOfPart recordings(ctx);
  dac::CodecStatePool pool(codec, ctx, count);
  std::vector<dac::CodecStream> opened;
  std::vector<dac::CodecStream*> streams;
  std::vector<int32_t> offsets = {0};
  for (int i = 0; i < count; ++i) {
    opened.emplace_back(pool);
    offsets.push_back(offsets.back() + frames);
  }
  for (dac::CodecStream& stream : opened) streams.push_back(&stream);
  const std::vector<int32_t> codes = random_codes(config, offsets.back(), options.seed);
  std::vector<float> pcm(static_cast<size_t>(offsets.back() * config.samples_per_frame()));
  return median_seconds(kCodecWarmUp, times,
                        [&] { codec.decode_streams(ctx, streams, {offsets}, codes, pcm); });
}

// Seconds of sound a second, of clips of 3 to 15 s that are encoded together.
double clips_audio_s_per_s(const dac::Codec& codec, std::span<const float> sound, int count,
                           ops::Context& ctx) {
  constexpr double kShortest_s = 3, kLongest_s = 15;
  constexpr int kTimes = 5;
  const auto rate = static_cast<double>(codec.config().sample_rate_hz);
  std::vector<float> samples;
  std::vector<int32_t> offsets = {0};
  int64_t frames = 0;
  for (int i = 0; i < count; ++i) {
    // 7 and the counts of clips in use share no factor: lengths come in no order.
    const double length_s =
        kShortest_s + (kLongest_s - kShortest_s) * (i * 7 % count) / std::max(1, count - 1);
    const size_t length = std::min(sound.size(), static_cast<size_t>(length_s * rate));
    samples.insert(samples.end(), sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length));
    offsets.push_back(static_cast<int32_t>(samples.size()));
    frames += codec.frames_for(static_cast<int64_t>(length));
  }
  std::vector<int32_t> codes(static_cast<size_t>(frames * codec.config().num_codebooks()));
  const double seconds = best_seconds(kTimes, [&] { codec.encode_batch(ctx, {offsets}, samples, codes); });
  return static_cast<double>(samples.size()) / rate / seconds;
}

}  // namespace

CodecFigures bench_codec(const dac::Codec& codec, const MachineLimits& limits,
                         const ModelBenchOptions& options, ops::Context& ctx) {
  constexpr int kClips = 2;
  constexpr int kPasses = 20, kClipsTogether = 32;
  const dac::Config& config = codec.config();
  const double limit = compute_limit(limits, codec.dtype());
  const double clip_s = options.codec_frames / config.frames_per_second();
  const std::vector<int32_t> codes = random_codes(config, options.codec_frames, options.seed);
  CodecFigures figures{.clip_s = clip_s};

  options.on_part("codec decode");
  std::vector<float> sound;
  const double decode_s = best_seconds(kClips, [&] { sound = codec.decode(ctx, codes); });
  figures.decode_times_real_time = clip_s / decode_s;
  figures.decode_gflop_per_s = kCodecDecodeGflopPerSecond * clip_s / decode_s;
  figures.decode_share_of_compute_limit = share_of(figures.decode_gflop_per_s, limit);

  options.on_part("codec encode");
  const double encode_s = best_seconds(kClips, [&] { codec.encode(ctx, sound); });
  figures.encode_times_real_time = clip_s / encode_s;
  figures.encode_gflop_per_s = kCodecEncodeGflopPerSecond * clip_s / encode_s;
  figures.encode_share_of_compute_limit = share_of(figures.encode_gflop_per_s, limit);

  if (options.codec_streams > 0) {
    figures.clips = kClipsTogether;
    figures.clips_audio_s_per_s = clips_audio_s_per_s(codec, sound, kClipsTogether, ctx);
  }

  options.on_part("codec streams");
  figures.one_frame_ms = pass_seconds(codec, options, 1, 1, options.codec_repeats, ctx) * 1e3;
  if (options.codec_streams > 0) {
    constexpr int kFrames = ModelBenchOptions::kFramesOfStream;
    const double pass_s = pass_seconds(codec, options, options.codec_streams, kFrames, kPasses, ctx);
    figures.streams = options.codec_streams;
    figures.streams_pass_ms = pass_s * 1e3;
    figures.streams_audio_s_per_s = options.codec_streams * kFrames / config.frames_per_second() / pass_s;
    figures.streams_share_of_compute_limit =
        share_of(figures.streams_audio_s_per_s * kCodecDecodeGflopPerSecond, limit);
  }
  return figures;
}

}  // namespace shoal::bench
