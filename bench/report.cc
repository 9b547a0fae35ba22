#include "bench/report.h"

#include <cstdio>

#include "base/error.h"

namespace shoal::bench {
namespace {

double gb(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// "891 GFLOP/s", or "-" if unknown.
std::string rate(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", value < 100 ? 1 : 0, value, unit);
  return value > 0 ? text : "-";
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return share > 0 ? text : "-";
}

void print(const CodecFigures& f) {
  std::printf(
      "codec       decode %.2fx real time (%.0f GFLOP/s, %s of the limit), encode %.2fx (%.0f GFLOP/s, %s)",
      f.decode_times_real_time, f.decode_gflop_per_s, percent(f.decode_share_of_compute_limit).c_str(),
      f.encode_times_real_time, f.encode_gflop_per_s, percent(f.encode_share_of_compute_limit).c_str());
  std::printf(", clip of %.0f s\n", f.clip_s);
  std::printf("            one frame of one stream %.2f ms\n", f.one_frame_ms);
  if (f.streams == 0) return;
  std::printf("            %d clips of 3 to 15 s encoded together: %.0f s of sound a second\n", f.clips,
              f.clips_audio_s_per_s);
  std::printf(
      "            %d streams by %d frames: %.0f s of sound a second, pass %.2f ms (%s of the limit)\n",
      f.streams, ModelBenchOptions::kFramesOfStream, f.streams_audio_s_per_s, f.streams_pass_ms,
      percent(f.streams_share_of_compute_limit).c_str());
}

}  // namespace

void print(const MachineLimits& m) {
  std::printf("machine     %s, %d threads, %s kernels\n", m.cpu.c_str(), m.threads, m.isa.c_str());
  std::printf("device      %s", m.device.c_str());
  if (m.device_memory_bytes > 0)
    std::printf(", compute capability %s, %.1f GB", m.compute_capability.c_str(), gb(m.device_memory_bytes));
  std::printf("\n");
  std::printf("limits      read %s, f32 %s, bf16 %s (measured)\n", rate(m.read_gb_per_s, "GB/s").c_str(),
              rate(m.f32_gflop_per_s, "GFLOP/s").c_str(), rate(m.bf16_gflop_per_s, "GFLOP/s").c_str());
}

void print(const ModelFigures& f) {
  std::printf(
      "model       %s, %s, weights %s, keys and values %s: language model %.2f GB (head of %lld rows), codec "
      "%s, %.2f GB\n",
      f.name.c_str(), f.dtype.c_str(), f.weights_dtype.c_str(), f.kv_dtype.c_str(),
      gb(f.language_model_bytes), static_cast<long long>(f.head_outputs), f.codec_weights_dtype.c_str(),
      gb(f.codec_bytes));
  for (const DecodeFigures& d : f.decode) {
    std::printf(
        "decode      batch %-3d %8.1f frames/s   step %8.2f ms   %4s of the read limit (%.2f GB a step)",
        d.batch, d.frames_per_s, d.step_ms, percent(d.share_of_read_limit).c_str(), d.gb_read);
    if (d.device_bytes > 0) std::printf(", %.2f GB beside the weights", gb(d.device_bytes));
    std::printf("\n");
  }
  std::printf("prefill     %d columns: %.0f columns/s, %.0f GFLOP/s, %s of the compute limit\n",
              f.prefill.columns, f.prefill.columns_per_s, f.prefill.gflop_per_s,
              percent(f.prefill.share_of_compute_limit).c_str());
  for (const FirstFrameFigures& first : f.first_frame)
    std::printf("first frame of a prompt of %d columns: %.2f ms\n", first.columns, first.ms);
  print(f.codec);
  std::printf("memory      peak %.2f GB resident\n", gb(f.peak_resident_bytes));
  if (f.device_bytes > 0)
    std::printf("            on the device: language model %.2f GB, codec %.2f GB, with workspaces %.2f GB\n",
                gb(f.language_model_device_bytes), gb(f.codec_device_bytes), gb(f.device_bytes));
}

void print(const LoadFigures& f) {
  std::printf(
      "load        %.2f s from the page cache (language model %.2f s, codec %.2f s; %.2f GB on disk, %.2f GB "
      "in memory, peak %.2f GB)\n",
      f.total_s(), f.language_model_s, f.codec_s, gb(f.file_bytes), gb(f.weight_bytes),
      gb(f.peak_resident_bytes));
}

void print(const KokoroFigures& f) {
  std::printf("model       %s, %s: %.2f GB\n", f.name.c_str(), f.dtype.c_str(), gb(f.weight_bytes));
  for (const KokoroBatchFigures& b : f.batches) {
    std::printf("speech      batch %-3d %8.1fx real time (RTF %.4f)   %8.2f ms for %.1f s   %4s of the limit",
                b.batch, b.times_real_time, 1 / b.times_real_time, b.ms, b.audio_s,
                percent(b.share_of_compute_limit).c_str());
    if (b.device_bytes > 0) std::printf(", %.2f GB beside the weights", gb(b.device_bytes));
    std::printf("\n");
  }
  std::printf("memory      %.2f GB resident at most\n", gb(f.peak_resident_bytes));
}

}  // namespace shoal::bench
