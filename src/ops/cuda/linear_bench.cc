// Times linear layers on a GPU, whose weights come from device memory each time: microseconds of one call
// among many in a recorded step, bytes of weights and operations per second. And packing, from memory that
// has been read before.
//   ops_cuda_linear_bench [filter]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "ops/cuda/stream_state.h"
#include "ops/linear.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr Device kDevice{DeviceKind::cuda, 0};

class LinearBench {
 public:
  explicit LinearBench(const char* filter)
      : filter_(filter),
        workspace_(kDevice),
        page_locked_(Workspace::page_locked(kDevice)),
        stream_(Stream::create(kDevice)),
        ctx_{.device = kDevice,
             .team = &team_,
             .workspace = &workspace_,
             .stream = stream_.get(),
             .host = &page_locked_,
             .graphs = &graphs_} {}

  void run() {
    packing(4096, 4096);
    for (const auto [outputs, depth] :
         {Size{4096, 1024}, {1024, 2048}, {1024, 1024}, {1024, 3072}, {4097, 1024}})
      matrix(outputs, depth, DType::bf16, {1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 1024, 4096});
    swiglu(3072, 1024, {1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096});
    layers({1, 2, 4, 8, 16, 32, 64, 128, 256});
    matrix(1024, 1024, DType::f32, {1, 8, 64, 1024, 4096});
  }

 private:
  struct Size {
    int64_t outputs, depth;
  };
  using Rows = std::initializer_list<int64_t>;
  static constexpr int64_t kManyBytes = int64_t{400} << 20;  // several times the L2 of any GPU of today

  // One step is `calls` calls with bytes and operations (multiplications and additions) each.
  void time(const std::string& name, int64_t calls, double bytes, double operations,
            FunctionRef<void()> step) {
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
    std::ranges::sort(us);
    const double median = us[us.size() / 2];
    std::printf("%-40s %9.2f us %8.0f GB/s %8.1f TFLOP/s\n", name.c_str(), median, bytes / median * 1e-3,
                operations / median * 1e-6);
    graphs_.clear();
  }

  bool wants(const std::string& name) const { return name.find(filter_) != std::string::npos; }

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

  // The same matrix at many places.
  std::vector<PackedMatrix> copies(int64_t outputs, int64_t depth, DType dtype, int64_t count) {
    const Tensor weight = random(dtype, {outputs, depth}, 0.03f);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < count; ++i) matrices.push_back(pack_matrix(ctx_, weight, {}, dtype));
    return matrices;
  }
  std::vector<PackedMatrix> pairs(int64_t outputs, int64_t depth, int64_t count) {
    const Tensor weight = random(DType::bf16, {outputs, depth}, 0.03f);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < count; ++i) matrices.push_back(pack_gate_up(ctx_, weight, weight, DType::bf16));
    return matrices;
  }

  void matrix(int64_t outputs, int64_t depth, DType dtype, Rows rows_of_cases) {
    const std::string name =
        std::string(name_of(dtype)) + " " + std::to_string(outputs) + " x " + std::to_string(depth);
    if (!wants(name)) return;
    const double bytes = static_cast<double>(outputs * depth * size_of(dtype));
    const auto weights =
        copies(outputs, depth, dtype, std::min<int64_t>(100, 1 + kManyBytes / (outputs * depth * 2)));
    const Tensor norm = on_gpu(DType::f32, {depth});
    for (const int64_t rows : rows_of_cases) {
      const Tensor x = on_gpu(dtype, {rows, depth}), wide = on_gpu(DType::f32, {rows, depth});
      const Tensor y(DType::f32, {rows, outputs}, kDevice);
      const double operations = 2.0 * static_cast<double>(rows * outputs * depth);
      const auto calls = static_cast<int64_t>(weights.size());
      time(name + ", rows " + std::to_string(rows), calls, bytes, operations, [&] {
        for (const PackedMatrix& weight : weights) linear(ctx_, x, weight, y);
      });
      time(name + ", rows " + std::to_string(rows) + ", norm", calls, bytes, operations, [&] {
        for (const PackedMatrix& weight : weights) norm_linear(ctx_, wide, {norm, 1e-6f}, weight, y);
      });
    }
  }

  void swiglu(int64_t hidden, int64_t depth, Rows rows_of_cases) {
    const std::string name = "swiglu " + std::to_string(hidden) + " x " + std::to_string(depth);
    if (!wants(name)) return;
    const auto weights = pairs(hidden, depth, 1 + kManyBytes / (hidden * depth * 4));
    const Tensor norm = on_gpu(DType::f32, {depth});
    for (const int64_t rows : rows_of_cases) {
      const Tensor x = on_gpu(DType::f32, {rows, depth}), y(DType::bf16, {rows, hidden}, kDevice);
      time(name + ", rows " + std::to_string(rows) + ", norm", static_cast<int64_t>(weights.size()),
           static_cast<double>(hidden * depth * 4), 4.0 * static_cast<double>(rows * hidden * depth), [&] {
             for (const PackedMatrix& weight : weights) norm_swiglu(ctx_, x, {norm, 1e-6f}, weight, y);
           });
    }
  }

  // The products of a layer of S1-mini, one after the other, without its attention.
  void layers(Rows rows_of_cases) {
    if (!wants("layer")) return;
    constexpr int64_t kDim = 1024, kQkv = 4096, kHeads = 2048, kHidden = 3072, kLayers = 28;
    const auto qkv = copies(kQkv, kDim, DType::bf16, kLayers),
               out = copies(kDim, kHeads, DType::bf16, kLayers);
    const auto up = pairs(kHidden, kDim, kLayers), down = copies(kDim, kHidden, DType::bf16, kLayers);
    const Tensor weight = on_gpu(DType::f32, {kDim});
    const RmsNorm norm{weight, 1e-6f};
    const double elements = kQkv * kDim + kDim * kHeads + 3 * kHidden * kDim;
    for (const int64_t rows : rows_of_cases) {
      const Tensor x = on_gpu(DType::f32, {rows, kDim}), heads = on_gpu(DType::bf16, {rows, kHeads});
      const Tensor projected(DType::f32, {rows, kQkv}, kDevice),
          hidden(DType::bf16, {rows, kHidden}, kDevice);
      time("layer, rows " + std::to_string(rows), kLayers, 2 * elements,
           2 * elements * static_cast<double>(rows), [&] {
             for (size_t i = 0; i < qkv.size(); ++i) {
               norm_linear(ctx_, x, norm, qkv[i], projected);
               linear(ctx_, heads, out[i], x, {.accumulate = true});
               norm_swiglu(ctx_, x, norm, up[i], hidden);
               linear(ctx_, hidden, down[i], x, {.accumulate = true});
             }
           });
    }
  }

  void packing(int64_t outputs, int64_t depth) {
    if (!wants("pack")) return;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor weight = random(dtype, {outputs, depth}, 1);
      std::vector<double> seconds;
      for (int i = 0; i < 9; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const PackedMatrix packed = pack_matrix(ctx_, weight, {}, DType::bf16);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::ranges::sort(seconds);
      const double median = seconds[seconds.size() / 2];
      std::printf("pack %s, %d threads: %.2f ms, %.1f GB/s\n", std::string(name_of(dtype)).c_str(),
                  team_.size(), median * 1e3, static_cast<double>(weight.bytes()) / median * 1e-9);
    }
  }

  std::string filter_;
  ThreadTeam team_;
  Workspace workspace_, page_locked_;
  std::unique_ptr<Stream> stream_;
  StepGraphs graphs_;
  Context ctx_;
  std::mt19937_64 generator_{1};
  int64_t steps_ = 0;
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  try {
    shoal::ops::cuda::LinearBench(argc > 1 ? argv[1] : "").run();
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
