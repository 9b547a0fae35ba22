// Times linear layers on a GPU, whose weights come from device memory each time: microseconds of one call
// among many in a recorded step, bytes of weights and operations per second. And packing, from memory that
// has been read before.
//   ops_cuda_linear_bench [filter]
#include <chrono>

#include "ops/cuda/device/gpu_bench.h"
#include "ops/residual.h"

namespace shoal::ops::cuda {
namespace {

class LinearBench : private GpuBench {
 public:
  explicit LinearBench(const char* filter) : GpuBench(filter, 0) {}

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
    const double median = median_us(calls, step);
    std::printf("%-40s %9.2f us %8.0f GB/s %8.1f TFLOP/s\n", name.c_str(), median, bytes / median * 1e-3,
                operations / median * 1e-6);
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
             const Workspace::Scope scope(*ctx_.workspace);
             Residual stream(ctx_, x, DType::bf16);
             for (size_t i = 0; i < qkv.size(); ++i) {
               norm_linear(ctx_, stream, norm, qkv[i], projected);
               add_linear(ctx_, heads, out[i], stream);
               norm_swiglu(ctx_, stream, norm, up[i], hidden);
               add_linear(ctx_, hidden, down[i], stream);
             }
             settled(ctx_, stream);
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
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  return shoal::ops::cuda::run_bench<shoal::ops::cuda::LinearBench>(argc, argv);
}
