#include "bench/report.h"

#include <cstdio>

namespace shoal::bench {

void print(const MachineLimits& m) {
  std::printf("machine     %s, %d threads, %s kernels\n", m.cpu.c_str(), m.threads, m.isa.c_str());
  std::printf("limits      read %.1f GB/s, f32 %.0f GFLOP/s, bf16 %.0f GFLOP/s (measured)\n", m.read_gb_per_s,
              m.f32_gflop_per_s, m.bf16_gflop_per_s);
}

void print(const ModelFigures& f) {
  std::printf("model       %s, %s: language model %.2f GB, codec %.2f GB\n", f.name.c_str(), f.dtype.c_str(),
              static_cast<double>(f.language_model_bytes) / 1e9, static_cast<double>(f.codec_bytes) / 1e9);
  for (const DecodeFigures& d : f.decode) {
    std::printf(
        "decode      batch %-3d %8.1f frames/s   step %7.1f ms   %3.0f %% of the read limit (%.2f GB a "
        "step)\n",
        d.batch, d.frames_per_s, d.step_ms, d.share_of_read_limit * 100, d.gb_read);
  }
  std::printf("prefill     %d columns: %.0f columns/s, %.0f GFLOP/s, %.0f %% of the compute limit\n",
              f.prefill.columns, f.prefill.columns_per_s, f.prefill.gflop_per_s,
              f.prefill.share_of_compute_limit * 100);
  std::printf(
      "codec       decode %.2fx real time (%.0f GFLOP/s, %.0f %% of the limit), encode %.2fx (%.0f GFLOP/s, "
      "%.0f %%), one frame %.1f ms\n",
      f.codec.decode_times_real_time, f.codec.decode_gflop_per_s, f.codec.decode_share_of_compute_limit * 100,
      f.codec.encode_times_real_time, f.codec.encode_gflop_per_s, f.codec.encode_share_of_compute_limit * 100,
      f.codec.first_frame_ms);
  std::printf("memory      peak %.2f GB resident\n", static_cast<double>(f.peak_resident_bytes) / 1e9);
}

void print(const LoadFigures& f) {
  std::printf(
      "load        %.2f s from the page cache (language model %.2f s, codec %.2f s; %.2f GB on disk, %.2f GB "
      "in memory, peak %.2f GB)\n",
      f.total_s(), f.language_model_s, f.codec_s, static_cast<double>(f.file_bytes) / 1e9,
      static_cast<double>(f.weight_bytes) / 1e9, static_cast<double>(f.peak_resident_bytes) / 1e9);
}

}  // namespace shoal::bench
