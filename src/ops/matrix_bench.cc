// How fast the matrix ops are on this machine: weights streamed from memory at few rows (GB/s, against a
// plain read), arithmetic at many (GFLOP/s).   ops_matrix_bench [threads] [isa]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/bf16.h"
#include "ops/conv1d.h"
#include "ops/cpu_features.h"
#include "ops/linear.h"

namespace shoal::ops {
namespace {

constexpr int64_t kCold = int64_t{192}
                          << 20;   // bytes of weights to cycle through: more than any cache near us
constexpr double kSeconds = 0.25;  // per figure

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU time where the caller is the whole team, so that a shared core does not count against us.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Tensor filled(DType dtype, Shape shape) {
  Tensor tensor(dtype, shape);
  uint32_t state = 1;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    if (dtype == DType::f32)
      tensor.as<float>()[i] = value;
    else
      tensor.as<Bf16>()[i] = float_to_bf16(value);
  }
  return tensor;
}

class Bench {
 public:
  explicit Bench(int threads) : team_(threads) {}

  void read_bandwidth() {
    const Tensor block = filled(DType::f32, {kCold / 4});
    std::vector<uint64_t> sums(static_cast<size_t>(team_.size()) * 8);
    const double seconds = best_seconds([&] {
      team_.parallel_for(kCold / 8, 1 << 15, [&](int64_t begin, int64_t end, int worker) {
        const auto* words = static_cast<const uint64_t*>(block.view().data());
        uint64_t sum = 0;
        for (int64_t i = begin; i < end; ++i) sum += words[i];
        sums[static_cast<size_t>(worker) * 8] += sum;
      });
    });
    std::printf("%d threads, %s: plain read %.1f GB/s (%llu)\n", team_.size(), name_of(cpu_isa()).data(),
                kCold / seconds * 1e-9, static_cast<unsigned long long>(sums[0] & 1));
  }

  void linear_layer(const char* name, int64_t depth, int64_t outputs, bool swiglu, MatrixFormat format) {
    const Tensor w = filled(DType::bf16, {outputs, depth});
    std::vector<PackedMatrix> copies;
    const Tensor sized = Tensor::sized(DType::bf16, {outputs, depth});
    const int64_t bytes = pack_matrix(ctx_, sized, {}, format).storage.bytes() * (swiglu ? 2 : 1);
    double pack_seconds = 1e9;
    for (int64_t i = 0; i <= kCold / bytes; ++i) {
      const double begin = clock();
      copies.push_back(swiglu ? pack_gate_up(ctx_, w, w, format) : pack_matrix(ctx_, w, {}, format));
      pack_seconds = std::min(pack_seconds, clock() - begin);
    }
    std::printf("%-14s %-4s %s pack %.2f GB/s\n", name, name_of(format.weights).data(),
                format.group > 0 ? concat("in groups of ", format.group, ",").c_str() : "",
                static_cast<double>(w.bytes() * (swiglu ? 2 : 1)) / pack_seconds * 1e-9);
    for (const int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
      const Tensor x = filled(DType::f32, {rows, depth}), y = filled(DType::f32, {rows, outputs});
      const size_t used = rows > 16 ? 1 : copies.size();
      const double seconds =
          best_seconds([&] {
            for (size_t i = 0; i < used; ++i)
              swiglu ? ops::linear_swiglu(ctx_, x, copies[i], y) : ops::linear(ctx_, x, copies[i], y);
          }) /
          static_cast<double>(used);
      const double flop = 2.0 * static_cast<double>(rows * outputs * depth) * (swiglu ? 2 : 1);
      std::printf("  %4ld rows %9.1f us %7.1f GB/s %8.1f GFLOP/s\n", static_cast<long>(rows), seconds * 1e6,
                  static_cast<double>(bytes) / seconds * 1e-9, flop / seconds * 1e-9);
    }
  }

  void convolution(int64_t channels, int64_t outputs, int64_t taps, int64_t rows, DType dtype) {
    const Tensor w = filled(DType::f32, {outputs, channels, taps}), alpha = filled(DType::f32, {channels});
    const PackedMatrix packed = pack_conv1d(ctx_, w, {}, dtype);
    const Tensor x = filled(DType::f32, {rows, channels}), y = filled(DType::f32, {rows, outputs});
    const Tensor history = Tensor::zeros(DType::f32, {1, (taps - 1) * channels});
    const std::vector<int32_t> offsets = {0, static_cast<int32_t>(rows)};
    const std::vector<int32_t> slots = {0};
    const ConvInput input{x, {.rows = {offsets}}, {history, 0, slots}, alpha};
    const double seconds =
        best_seconds([&] { causal_conv1d(ctx_, input, packed, 1, y, {.accumulate = true}); });
    std::printf("conv %ld -> %ld k%ld, %ld rows, %s: %.1f us %.1f GFLOP/s\n", static_cast<long>(channels),
                static_cast<long>(outputs), static_cast<long>(taps), static_cast<long>(rows),
                name_of(dtype).data(), seconds * 1e6,
                2e-9 * static_cast<double>(channels * outputs * taps * rows) / seconds);
  }

 private:
  double clock() const { return team_.size() == 1 ? thread_seconds() : now(); }

  // Best of the rounds that fit into the time.
  template <typename Body>
  double best_seconds(Body body) {
    double best = 1e9;
    const double start = now();
    do {
      const double begin = clock();
      body();
      best = std::min(best, clock() - begin);
    } while (now() - start < kSeconds);
    return best;
  }

  ThreadTeam team_;
  Workspace workspace_;
  Context ctx_{.device = {}, .team = &team_, .workspace = &workspace_};
};

int run(int threads) {
  Bench bench(threads);
  bench.read_bandwidth();
  for (const MatrixFormat format :
       {MatrixFormat(DType::u4, DType::i8, 32), MatrixFormat(DType::u4, DType::i8, 64),
        MatrixFormat(DType::u4, DType::i8, 128), MatrixFormat(DType::i8), MatrixFormat(DType::bf16),
        MatrixFormat(DType::f32)}) {
    const DType dtype = format.weights;
    bench.linear_layer("1024 -> 4096", 1024, 4096, false, format);
    bench.linear_layer("2048 -> 1024", 2048, 1024, false, format);
    bench.linear_layer("1024 -> 2x3072", 1024, 3072, true, format);
    bench.linear_layer("3072 -> 1024", 3072, 1024, false, format);
    // The text rows of S1-mini's head.
    if (dtype != DType::f32) bench.linear_layer("1024 -> 151647", 1024, 151'647, false, format);
    if (format.operand == DType::i8) continue;  // convolutions have no kernels of integers
    bench.convolution(768, 768, 7, 512, dtype);
    bench.convolution(192, 192, 7, 4096, dtype);
    bench.convolution(96, 96, 7, 8192, dtype);
    bench.convolution(96, 1, 7, 8192, dtype);
  }
  return 0;
}

}  // namespace
}  // namespace shoal::ops

int main(int argc, char** argv) {
  try {
    if (argc > 2)
      if (const auto isa = shoal::ops::parse_cpu_isa(argv[2])) shoal::ops::set_cpu_isa(*isa);
    return shoal::ops::run(argc > 1 ? std::atoi(argv[1]) : 0);
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
