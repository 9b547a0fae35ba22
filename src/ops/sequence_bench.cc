// Times the ops that run along utterances.   ops_sequence_bench [threads] [isa ...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "ops/cpu_features.h"
#include "ops/harmonic_source.h"
#include "ops/linear.h"
#include "ops/lstm.h"
#include "ops/self_attention.h"
#include "ops/short_stft.h"

namespace shoal::ops {
namespace {

Tensor random_tensor(Shape shape, float scale) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, scale);
  Tensor tensor(DType::f32, shape);
  for (float& value : tensor.span<float>()) value = normal(generator);
  return tensor;
}

// Utterances of equal length, 8 frames apart.
struct Utterances {
  std::vector<int32_t> starts, frames;
  int64_t total = 8;

  Utterances(int count, int32_t length) {
    for (int i = 0; i < count; ++i, total += length + 8) {
      starts.push_back(static_cast<int32_t>(total));
      frames.push_back(length);
    }
  }
  Segments at(int64_t rate, int64_t extra = 0) const {
    return {.starts = starts, .frames = frames, .total = total, .rate = rate, .extra = extra};
  }
};

class Bench {
 public:
  explicit Bench(int threads) : team_(threads) {}

  void run() {
    for (const int32_t rows : {107, 321})
      for (const int count : {1, 4}) lstm(count, rows);
    for (const int32_t rows : {107, 512}) attention(rows);
    for (const int count : {1, 4}) sound(count);
  }

 private:
  // Of the fastest call; CPU time where the caller is the whole team, so that a shared core does not count.
  double seconds_of(FunctionRef<void()> call) {
    const auto now = [&] {
      timespec time{};
      clock_gettime(team_.size() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    double fastest = 1e9;
    const double start = now();
    for (int calls = 0; calls < 5 || now() - start < 0.3; ++calls) {
      const double before = now();
      call();
      fastest = std::min(fastest, now() - before);
    }
    return fastest;
  }

  void lstm(int count, int32_t rows) {
    constexpr int64_t kInputs = 640, kHidden = 256;
    const Tensor ih = random_tensor({4 * kHidden, kInputs}, 0.04f), bias = random_tensor({4 * kHidden}, 0.1f);
    const Tensor hh = random_tensor({4 * kHidden, kHidden}, 0.06f);
    const LstmDirection direction{ih, hh, bias, bias};
    const PackedLstm packed = pack_lstm(ctx_, direction, direction, DType::f32);
    const Utterances utterances(count, rows);
    const Tensor x = random_tensor({utterances.total, kInputs}, 1), y(DType::f32, {utterances.total, 512});
    const Tensor products(DType::f32, {utterances.total, packed.input.outputs});
    const double seconds = seconds_of([&] { bidirectional_lstm(ctx_, x, utterances.at(1), packed, y); });
    const double inputs = seconds_of([&] { linear(ctx_, x, packed.input, products); });
    const double steps = (seconds - inputs) / rows * 1e6;
    std::printf(
        "  bidirectional_lstm 640 -> 256, T %3d, %d segments %8.3f ms, its product %6.3f ms, a step of all "
        "%6.2f us\n",
        rows, count, seconds * 1e3, inputs * 1e3, steps);
  }

  void attention(int32_t rows) {
    const Utterances utterances(1, rows);
    const Tensor qkv = random_tensor({utterances.total, 3 * 768}, 1),
                 out(DType::f32, {utterances.total, 768});
    const double seconds = seconds_of([&] { self_attention(ctx_, qkv, 12, utterances.at(1), out); });
    std::printf("  self_attention 12 x 64, T %3d %8.3f ms, %6.1f GFLOP/s\n", rows, seconds * 1e3,
                4e-9 * rows * rows * 768 / seconds);
  }

  // 8 s of speech each: 320 frames of 600 samples.
  void sound(int count) {
    const Utterances utterances(count, 320);
    const int64_t total = utterances.total;
    const std::vector<uint64_t> seeds(static_cast<size_t>(count), 1);
    const Tensor f0 = random_tensor({total * 2}, 200), weights = random_tensor({kHarmonics}, 0.3f);
    const Tensor bias = random_tensor({1}, 0.1f), wave(DType::f32, {total * 600});
    const Tensor spectra(DType::f32, {total * 120, 22}), drawn = random_tensor({total * 120, 22}, 1);
    const HarmonicSource source{weights, bias};
    const auto report = [&](const char* name, FunctionRef<void()> call) {
      std::printf("  %s, %d x 8 s %8.3f ms\n", name, count, seconds_of(call) * 1e3);
    };
    report("harmonic_source   ",
           [&] { harmonic_source(ctx_, source, f0, utterances.at(2), {.seeds = seeds}, wave); });
    report("short_stft        ", [&] { short_stft(ctx_, {}, wave, utterances.at(120, 1), spectra); });
    report("inverse_short_stft", [&] { inverse_short_stft(ctx_, {}, drawn, utterances.at(120, 1), wave); });
  }

  ThreadTeam team_;
  Workspace workspace_;
  Context ctx_{.device = {}, .team = &team_, .workspace = &workspace_};
};

}  // namespace
}  // namespace shoal::ops

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<shoal::ops::CpuIsa> isas;
  for (int i = 2; i < argc; ++i)
    if (const auto isa = shoal::ops::parse_cpu_isa(argv[i])) isas.push_back(*isa);
  if (isas.empty()) isas.push_back(shoal::ops::cpu_isa());
  for (const shoal::ops::CpuIsa isa : isas) {
    shoal::ops::set_cpu_isa(isa);
    std::printf("%s, %d threads\n", std::string(shoal::ops::name_of(isa)).c_str(), threads);
    shoal::ops::Bench(threads).run();
  }
}
