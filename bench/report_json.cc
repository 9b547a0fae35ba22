#include <nlohmann/json.hpp>

#include "bench/report.h"

namespace shoal::bench {
namespace {

using nlohmann::ordered_json;

ordered_json known(double value) { return value > 0 ? ordered_json(value) : ordered_json(nullptr); }

ordered_json json_of(const DecodeFigures& f) {
  return {{"batch", f.batch},
          {"step_ms", f.step_ms},
          {"frames_per_s", f.frames_per_s},
          {"gb_read_per_step", f.gb_read},
          {"share_of_read_limit", known(f.share_of_read_limit)},
          {"device_bytes", f.device_bytes}};
}

ordered_json json_of(const PrefillFigures& f) {
  return {{"columns", f.columns},
          {"columns_per_s", f.columns_per_s},
          {"gflop_per_s", f.gflop_per_s},
          {"share_of_compute_limit", known(f.share_of_compute_limit)}};
}

ordered_json json_of(const CodecFigures& f) {
  ordered_json json = {{"clip_s", f.clip_s},
                       {"decode_times_real_time", f.decode_times_real_time},
                       {"decode_gflop_per_s", f.decode_gflop_per_s},
                       {"decode_share_of_compute_limit", known(f.decode_share_of_compute_limit)},
                       {"encode_times_real_time", f.encode_times_real_time},
                       {"encode_gflop_per_s", f.encode_gflop_per_s},
                       {"encode_share_of_compute_limit", known(f.encode_share_of_compute_limit)},
                       {"one_frame_ms", f.one_frame_ms}};
  if (f.clips > 0) json["encode_together"] = {{"clips", f.clips}, {"audio_s_per_s", f.clips_audio_s_per_s}};
  if (f.streams > 0)
    json["streams"] = {{"streams", f.streams},
                       {"frames_of_each", ModelBenchOptions::kFramesOfStream},
                       {"pass_ms", f.streams_pass_ms},
                       {"audio_s_per_s", f.streams_audio_s_per_s},
                       {"share_of_compute_limit", known(f.streams_share_of_compute_limit)}};
  return json;
}

}  // namespace

ordered_json json_of(const MachineLimits& m) {
  const bool is_gpu = m.device_memory_bytes > 0;
  return {{"device", m.device},
          {"compute_capability", is_gpu ? ordered_json(m.compute_capability) : ordered_json(nullptr)},
          {"device_memory_bytes", is_gpu ? ordered_json(m.device_memory_bytes) : ordered_json(nullptr)},
          {"cpu", m.cpu},
          {"isa", m.isa},
          {"threads", m.threads},
          {"read_gb_per_s", known(m.read_gb_per_s)},
          {"f32_gflop_per_s", known(m.f32_gflop_per_s)},
          {"bf16_gflop_per_s", known(m.bf16_gflop_per_s)}};
}

ordered_json json_of(const ModelFigures& f) {
  ordered_json decode = ordered_json::array(), first_frame = ordered_json::array();
  for (const DecodeFigures& d : f.decode) decode.push_back(json_of(d));
  for (const FirstFrameFigures& first : f.first_frame)
    first_frame.push_back({{"columns", first.columns}, {"ms", first.ms}});
  return {{"model", f.name},
          {"dtype", f.dtype},
          {"weights_dtype", f.weights_dtype},
          {"kv_dtype", f.kv_dtype},
          {"codec_weights_dtype", f.codec_weights_dtype},
          {"head_rows", f.head_outputs},
          {"decode", decode},
          {"prefill", json_of(f.prefill)},
          {"first_frame", first_frame},
          {"codec", json_of(f.codec)},
          {"language_model_bytes", f.language_model_bytes},
          {"codec_bytes", f.codec_bytes},
          {"peak_resident_bytes", f.peak_resident_bytes},
          {"device_bytes",
           {{"language_model", f.language_model_device_bytes},
            {"codec", f.codec_device_bytes},
            {"with_workspaces", f.device_bytes}}}};
}

ordered_json json_of(const LoadFigures& f) {
  return {{"language_model_s", f.language_model_s},
          {"codec_s", f.codec_s},
          {"total_s", f.total_s()},
          {"file_bytes", f.file_bytes},
          {"weight_bytes", f.weight_bytes},
          {"peak_resident_bytes", f.peak_resident_bytes}};
}

ordered_json json_of(const KokoroFigures& f) {
  ordered_json batches = ordered_json::array();
  for (const KokoroBatchFigures& b : f.batches)
    batches.push_back({{"batch", b.batch},
                       {"ms", b.ms},
                       {"audio_s", b.audio_s},
                       {"times_real_time", b.times_real_time},
                       {"real_time_factor", 1 / b.times_real_time},
                       {"gflop_per_s", b.gflop_per_s},
                       {"share_of_compute_limit", known(b.share_of_compute_limit)},
                       {"device_bytes", b.device_bytes}});
  return {{"model", f.name},
          {"precision", f.dtype},
          {"weight_bytes", f.weight_bytes},
          {"batches", batches},
          {"peak_resident_bytes", f.peak_resident_bytes}};
}

}  // namespace shoal::bench
