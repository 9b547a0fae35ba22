// The speed of a model of given sizes on a device, compared with the device's limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "models/dac/codec.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/context.h"

namespace shoal::bench {

// The defaults suit a CPU.
struct ModelBenchOptions {
  Formats formats = DType::bf16;
  MatrixFormat codec_format = DType::bf16;
  bool semantic_head = false;  // the head has the semantic rows only; otherwise as the family has it
  std::vector<int> batches = {1, 4, 8};
  static constexpr int kPageSize = 32;
  int context_columns = 288;   // columns already in the KV cache; a multiple of kPageSize
  bool shared_context = true;  // the sequences of a batch share these pages, like sequences of one voice
  int decode_frames = 24;      // timed frames per batch size
  int prefill_columns = 512;
  std::vector<int> prompts = {200, 1000};  // columns, for the time to the first frame
  int prompt_repeats = 3;
  int codec_frames = 216;  // of one clip; about 10 s of sound
  int codec_repeats = 8;   // passes of one frame
  int codec_streams = 0;   // that are decoded together, kFramesOfStream each; 0: not measured
  uint64_t seed = 1;
  // Called before each part with its name, for a progress line.
  std::function<void(const std::string& part)> on_part = [](const std::string&) {};

  static constexpr int kFramesOfStream = 8;
  // For a GPU: batches of 1, 8, 64 and 256, each sequence with its own context, longer runs, 64 streams.
  static ModelBenchOptions for_device(Device device);
};

// Shares of limits are 0 where the limit is not known.

// One step of `batch` sequences, one frame each. Median over the timed steps.
struct DecodeFigures {
  int batch = 0;
  double step_ms = 0;
  double frames_per_s = 0;
  double gb_read = 0;              // weights and KV that a step must read at least once
  double share_of_read_limit = 0;  // gb_read / step time / measured read bandwidth
  int64_t device_bytes = 0;        // in use on a GPU by then, beside the weights
};

struct PrefillFigures {
  int columns = 0;
  double columns_per_s = 0;
  double gflop_per_s = 0;
  double share_of_compute_limit = 0;
};

// From the call with a prompt to its first frame on the host, without other load. Median.
struct FirstFrameFigures {
  int columns = 0;
  double ms = 0;
};

struct CodecFigures {
  double decode_times_real_time = 0, encode_times_real_time = 0;  // one clip
  double clip_s = 0;                                              // its length
  int clips = 0;                                                  // of the next one; 0: not measured
  double clips_audio_s_per_s = 0;                                 // clips of 3 to 15 s, encoded together
  double decode_gflop_per_s = 0, encode_gflop_per_s = 0;
  double decode_share_of_compute_limit = 0, encode_share_of_compute_limit = 0;
  double one_frame_ms = 0;  // one new frame of one stream that is under way. Median
  int streams = 0;          // of the next three; 0: not measured
  double streams_pass_ms = 0;
  double streams_audio_s_per_s = 0;
  double streams_share_of_compute_limit = 0;
};

struct ModelFigures {
  std::string name, dtype, weights_dtype, kv_dtype, codec_weights_dtype;
  int64_t head_outputs = 0;
  std::vector<DecodeFigures> decode;
  PrefillFigures prefill;
  std::vector<FirstFrameFigures> first_frame;
  CodecFigures codec;
  int64_t language_model_bytes = 0, codec_bytes = 0;
  int64_t peak_resident_bytes = 0;
  // On a GPU: the memory of each part, measured by the free memory before and after.
  int64_t language_model_device_bytes = 0, codec_device_bytes = 0, device_bytes = 0;
};

// Multiply-adds of the published codec per second of sound, in GFLOP, counted from its sizes.
constexpr double kCodecDecodeGflopPerSecond = 146, kCodecEncodeGflopPerSecond = 77.5;

// The device's peak for matrices of that dtype, in GFLOP/s; 0: unknown.
double compute_limit(const MachineLimits& limits, DType dtype);

// In the order of options.batches.
std::vector<DecodeFigures> bench_decode(const dual_ar::DualAr& model, const MachineLimits& limits,
                                        const ModelBenchOptions& options, ops::Context& ctx);
PrefillFigures bench_prefill(const dual_ar::DualAr& model, const MachineLimits& limits,
                             const ModelBenchOptions& options, ops::Context& ctx);
std::vector<FirstFrameFigures> bench_first_frame(const dual_ar::DualAr& model,
                                                 const ModelBenchOptions& options, ops::Context& ctx);
CodecFigures bench_codec(const dac::Codec& codec, const MachineLimits& limits,
                         const ModelBenchOptions& options, ops::Context& ctx);

// Random weights of a language model of these sizes, and of the published codec. name: what the figures are
// called.
ModelFigures bench_language_model(const std::string& name, const dual_ar::Config& config,
                                  const MachineLimits& limits, const ModelBenchOptions& options,
                                  ops::Context& ctx);

}  // namespace shoal::bench
