// What the benchmarks of the kernels share: a context that records, operands, and the time of a recorded
// step.
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "base/function_ref.h"
#include "ops/cuda/device/stream_state.h"
#include "ops/execution.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {

class GpuBench {
 protected:
  static constexpr Device kDevice{DeviceKind::cuda, 0};

  // Measures only what has `filter` in its name.
  GpuBench(const char* filter, int threads) : filter_(filter), team_(threads) {}

  bool wants(const std::string& name) const { return name.find(filter_) != std::string::npos; }

  // Microseconds of one of the `calls` calls that the step makes: the median of nine replays.
  double median_us(int64_t calls, FunctionRef<void()> step) {
    const StepKey key{.owner = this, .step = ++steps_};
    for (int i = 0; i < 3; ++i) run_step(ctx_, key, step);
    cudaEvent_t begin{}, end{};
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    const EventHandle keep_begin(begin), keep_end(end);
    std::vector<double> us;
    for (int i = 0; i < 9; ++i) {
      cudaEventRecord(begin, state_of(ctx_).stream());
      run_step(ctx_, key, step);
      cudaEventRecord(end, state_of(ctx_).stream());
      synchronize(ctx_);
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, begin, end);
      us.push_back(1000.0 * milliseconds / static_cast<double>(calls));
    }
    ctx_.graphs->clear();
    std::ranges::sort(us);
    return us[us.size() / 2];
  }

  // Normal values, in host memory. f32 or bf16.
  Tensor random(DType dtype, Shape shape, float scale) {
    std::normal_distribution<float> normal(0.0f, scale);
    Tensor host(dtype, shape);
    for (int64_t i = 0; i < host.elements(); ++i) {
      const float value = normal(generator_);
      if (dtype == DType::bf16)
        host.as<Bf16>()[i] = float_to_bf16(value);
      else
        host.as<float>()[i] = value;
    }
    return host;
  }
  Tensor on_gpu(DType dtype, Shape shape, float scale = 1) {
    return resident(ctx_, random(dtype, shape, scale));
  }
  Tensor ints(const std::vector<int32_t>& values) {
    Tensor host(DType::i32, {static_cast<int64_t>(values.size())});
    std::ranges::copy(values, host.as<int32_t>());
    return resident(ctx_, std::move(host));
  }

 private:
  std::string filter_;

 protected:
  ThreadTeam team_;

 private:
  Execution execution_{kDevice, team_, {.record = true}};
  int64_t steps_ = 0;

 protected:
  Context& ctx_ = execution_.context();
  std::mt19937_64 generator_{1};
};

// main() of a benchmark: [filter]
template <typename Bench>
int run_bench(int argc, char** argv) {
  try {
    Bench(argc > 1 ? argv[1] : "").run();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace shoal::ops::cuda
