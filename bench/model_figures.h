// How fast a model of given sizes runs on this machine, beside what the machine could do at best.
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

struct ModelBenchOptions {
  DType dtype = DType::bf16;
  std::vector<int> batches = {1, 4, 8};
  int context_columns = 288;  // columns already in the KV cache; a multiple of the page size
  int decode_frames = 24;     // timed frames per batch size
  int prefill_columns = 512;
  int codec_frames = 216;  // about 10 s of sound
  uint64_t seed = 1;
  // Called before each part with its name, for a progress line.
  std::function<void(const std::string& part)> on_part = [](const std::string&) {};
};

// One step of `batch` sequences, one frame each. Median over the timed steps.
struct DecodeFigures {
  int batch = 0;
  double step_ms = 0;
  double frames_per_s = 0;
  double gb_read = 0;              // weights and KV that a step must read at least once
  double share_of_read_limit = 0;  // gb_read / step time / measured read bandwidth
};

struct PrefillFigures {
  int columns = 0;
  double columns_per_s = 0;
  double gflop_per_s = 0;
  double share_of_compute_limit = 0;
};

struct CodecFigures {
  double decode_times_real_time = 0, encode_times_real_time = 0;
  double decode_gflop_per_s = 0, encode_gflop_per_s = 0;
  double decode_share_of_compute_limit = 0, encode_share_of_compute_limit = 0;
  double first_frame_ms = 0;  // one new frame of one stream
};

struct ModelFigures {
  std::string name, dtype;
  std::vector<DecodeFigures> decode;
  PrefillFigures prefill;
  CodecFigures codec;
  int64_t language_model_bytes = 0, codec_bytes = 0;
  int64_t peak_resident_bytes = 0;
};

// Multiply-adds of the published codec per second of sound, in GFLOP (spec dac 7).
constexpr double kCodecDecodeGflopPerSecond = 146, kCodecEncodeGflopPerSecond = 77.5;

std::vector<DecodeFigures> bench_decode(const dual_ar::DualAr& model, const MachineLimits& limits,
                                        const ModelBenchOptions& options, ops::Context& ctx);
PrefillFigures bench_prefill(const dual_ar::DualAr& model, const MachineLimits& limits,
                             const ModelBenchOptions& options, ops::Context& ctx);
CodecFigures bench_codec(const dac::Codec& codec, const MachineLimits& limits,
                         const ModelBenchOptions& options, ops::Context& ctx);

// Random weights at the published sizes of S1-mini and its codec.
ModelFigures bench_s1_mini(const MachineLimits& limits, const ModelBenchOptions& options, ops::Context& ctx);

}  // namespace shoal::bench
