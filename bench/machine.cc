#include "bench/machine.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include "base/error.h"
#include "bench/timing.h"
#include "ops/cpu_features.h"
#include "ops/cuda_devices.h"
#include "ops/device_speed.h"
#include "ops/device_state.h"
#include "ops/linear.h"

namespace shoal::bench {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Reads a piece as several streams side by side, each prefetched. How many are best depends on the machine.
template <int64_t kStreams>
uint64_t sum_words(const uint64_t* words, int64_t count) {
  constexpr int64_t kWordsPerLine = 8, kLinesAhead = 24;
  const int64_t length =
      count / (kStreams * kWordsPerLine) * kWordsPerLine;  // words of a stream: whole lines
  uint64_t sums[kWordsPerLine] = {};
  for (int64_t i = 0; i < length; i += kWordsPerLine) {
    for (int64_t stream = 0; stream < kStreams; ++stream) {
      const uint64_t* line = words + stream * length + i;
      __builtin_prefetch(line + kLinesAhead * kWordsPerLine);
      for (int64_t word = 0; word < kWordsPerLine; ++word) sums[word] += line[word];
    }
  }
  uint64_t total = 0;
  for (uint64_t sum : sums) total += sum;
  return total;
}

double measure_read(ThreadTeam& team) {
  constexpr int64_t kBytes = int64_t{768} << 20;
  const Tensor buffer(DType::u8, {kBytes});
  std::memset(buffer.as<uint8_t>(), 1, kBytes);
  const auto* words = reinterpret_cast<const uint64_t*>(buffer.as<uint8_t>());
  using Read = uint64_t (*)(const uint64_t*, int64_t);
  constexpr Read kPatterns[] = {sum_words<1>, sum_words<2>, sum_words<4>, sum_words<8>};
  constexpr int64_t kPiece = int64_t{1} << 19;  // words: 4 MB
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int repeat = 0; repeat < 16; ++repeat) {
    const Read read = kPatterns[repeat % 4];
    const double start = now_s();
    team.parallel_for(kBytes / 8, kPiece, [&](int64_t begin, int64_t end, int) {
      sink.fetch_add(read(words + begin, end - begin), std::memory_order_relaxed);
    });
    best = std::max(best, static_cast<double>(kBytes) / (now_s() - start));
  }
  CHECK(sink != 0);
  return best / 1e9;
}

double measure_product(ops::Context& ctx, DType dtype) {
  constexpr int64_t kRows = 512, kDepth = 1024, kOutputs = 1024;
  const Tensor weight = Tensor::zeros(DType::f32, {kOutputs, kDepth});
  const Tensor x(DType::f32, {kRows, kDepth}), y(DType::f32, {kRows, kOutputs});
  for (int64_t i = 0; i < weight.elements(); ++i)
    weight.as<float>()[i] = 0.001f * static_cast<float>(i % 97 - 48);
  for (int64_t i = 0; i < x.elements(); ++i) x.as<float>()[i] = 0.01f * static_cast<float>(i % 89 - 44);
  const ops::PackedMatrix packed = ops::pack_matrix(ctx, weight, {}, dtype);
  double best = 0;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const double start = now_s();
    ops::linear(ctx, x, packed, y);
    best = std::max(best, 2.0 * kRows * kDepth * kOutputs / (now_s() - start));
  }
  return best / 1e9;
}

}  // namespace

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

void reset_peak_resident() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

MachineLimits measure_machine(ops::Context& ctx) {
  MachineLimits limits{.device = ops::describe(ctx.device),
                       .cpu = cpu_model(),
                       .isa = std::string(ops::name_of(ops::cpu_isa())),
                       .threads = ctx.team->size()};
  if (const auto speed = ops::measure_device_speed(ctx)) {
    const ops::CudaDevice gpu = ops::cuda_devices()[static_cast<size_t>(ctx.device.index)];
    limits.compute_capability = concat(gpu.major, '.', gpu.minor);
    limits.device_memory_bytes = gpu.memory_bytes;
    limits.read_gb_per_s = speed->read_bytes_per_s / 1e9;
    limits.bf16_gflop_per_s = speed->bf16_flop_per_s / 1e9;
  } else {
    limits.read_gb_per_s = measure_read(*ctx.team);
    limits.f32_gflop_per_s = measure_product(ctx, DType::f32);
    limits.bf16_gflop_per_s = measure_product(ctx, DType::bf16);
  }
  return limits;
}

double share_of(double reached, double limit) { return limit > 0 ? reached / limit : 0; }

}  // namespace shoal::bench
