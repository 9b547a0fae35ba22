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
      matrix(outputs, depth, DType::bf16, {1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024, 2048, 4096});
    swiglu(3072, 1024, {1, 2, 4, 8, 16, 32, 64, 256, 512, 1024, 2048, 4096});
    layers("layer", kS1, {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 384, 512, 1024, 2048});
    layers("s2 layer", kS2, {1, 2, 4, 8, 16, 17, 32, 64, 128, 200, 256, 512, 1000, 2048});
    layers("i8 layer", kS1, {1, 2, 4, 8, 16, 17, 32, 64, 100, 128, 192, 256, 300, 384, 512, 1024, 2048},
           kInt8);
    layers("i8 s2 layer", kS2, {1, 2, 4, 8, 12, 16, 32, 64, 128, 200, 256, 512, 1000, 2048}, kInt8);
    layers("fp8 layer", kS1, {1, 2, 4, 8, 16, 32, 64}, kFp8);
    layers("fp8 s2 layer", kS2, {1, 2, 4, 8, 16, 32, 64}, kFp8);
    layers("u4 layer", kS1, {1, 2, 4, 8, 16, 32, 64, 128}, kInt4);
    layers("u4 s2 layer", kS2, {1, 2, 4, 8, 16, 32, 64, 200, 512, 2048}, kInt4);
    for (const auto [outputs, depth] : {Size{6144, 2560}, {2560, 4096}, {2560, 9728}})
      matrix(outputs, depth, DType::bf16, {1, 8, 16, 32, 64, 128, 200, 256, 1000}, "s2 ");
    swiglu(9728, 2560, {1, 8, 16, 32, 64, 128, 200, 256, 1000}, "s2 ");
    for (const auto [outputs, depth] : {Size{4096, 1024}, {1024, 2048}, {1024, 3072}})
      matrix(outputs, depth, kInt8, {16, 32, 64, 512, 2048}, "s1 ");
    swiglu(3072, 1024, {16, 32, 64, 512, 2048}, "s1 ", kInt8);
    for (const MatrixFormat format : {kInt8, kFp8}) {
      for (const auto [outputs, depth] : {Size{6144, 2560}, {2560, 4096}, {2560, 9728}})
        matrix(outputs, depth, format, {1, 4, 8, 16, 64, 512, 2048}, "s2 ");
      swiglu(9728, 2560, {1, 4, 8, 16, 64, 512, 2048}, "s2 ", format);
    }
    matrix(1024, 1024, DType::f32, {1, 8, 64, 1024, 4096});
  }

 private:
  struct Size {
    int64_t outputs, depth;
  };
  using Rows = std::initializer_list<int64_t>;
  struct Layer {
    int64_t dim, qkv, heads, hidden, count;
  };
  static constexpr Layer kS1{1024, 4096, 2048, 3072, 28}, kS2{2560, 6144, 4096, 9728, 8};  // of the models
  static constexpr MatrixFormat kInt8{DType::i8, DType::bf16}, kFp8{DType::f8, DType::bf16},
      kInt4{DType::u4, DType::bf16, kUsualGroup};
  static constexpr int64_t kManyBytes = int64_t{400} << 20;  // several times the L2 of any GPU of today

  // Of a weight, with scales and minima of groups.
  static double bytes_of(const MatrixFormat& format) {
    return format.weights == DType::u4 ? 0.5 + 4.0 / static_cast<double>(format.group)
                                       : static_cast<double>(size_of(format.weights));
  }

  // One step is `calls` calls with bytes and operations (multiplications and additions) each.
  void time(const std::string& name, int64_t calls, double bytes, double operations,
            FunctionRef<void()> step) {
    const double median = median_us(calls, step);
    std::printf("%-40s %9.2f us %8.0f GB/s %8.1f TFLOP/s\n", name.c_str(), median, bytes / median * 1e-3,
                operations / median * 1e-6);
  }

  // The same matrix at many places.
  std::vector<PackedMatrix> copies(int64_t outputs, int64_t depth, MatrixFormat format, int64_t count) {
    const Tensor weight = random(format.operand, {outputs, depth}, 0.03f);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < count; ++i) matrices.push_back(pack_matrix(ctx_, weight, {}, format));
    return matrices;
  }
  std::vector<PackedMatrix> pairs(int64_t outputs, int64_t depth, int64_t count,
                                  MatrixFormat format = DType::bf16) {
    const Tensor weight = random(DType::bf16, {outputs, depth}, 0.03f);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < count; ++i) matrices.push_back(pack_gate_up(ctx_, weight, weight, format));
    return matrices;
  }

  void matrix(int64_t outputs, int64_t depth, MatrixFormat format, Rows rows_of_cases,
              const std::string& model = "") {
    const DType dtype = format.operand;
    const std::string name = model + std::string(name_of(format.weights)) + " " + std::to_string(outputs) +
                             " x " + std::to_string(depth);
    if (!wants(name)) return;
    const double bytes = static_cast<double>(outputs * depth * size_of(format.weights));
    const auto weights =
        copies(outputs, depth, format, std::min<int64_t>(100, 1 + kManyBytes / (outputs * depth * 2)));
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

  void swiglu(int64_t hidden, int64_t depth, Rows rows_of_cases, const std::string& model = "",
              MatrixFormat format = DType::bf16) {
    const std::string name = model + std::string(name_of(format.weights)) + " swiglu " +
                             std::to_string(hidden) + " x " + std::to_string(depth);
    if (!wants(name)) return;
    const auto weights = pairs(hidden, depth, 1 + kManyBytes / (hidden * depth * 4), format);
    const Tensor norm = on_gpu(DType::f32, {depth});
    for (const int64_t rows : rows_of_cases) {
      const Tensor x = on_gpu(DType::f32, {rows, depth}), y(DType::bf16, {rows, hidden}, kDevice);
      time(name + ", rows " + std::to_string(rows) + ", norm", static_cast<int64_t>(weights.size()),
           static_cast<double>(hidden * depth * 2 * size_of(format.weights)),
           4.0 * static_cast<double>(rows * hidden * depth), [&] {
             for (const PackedMatrix& weight : weights) norm_swiglu(ctx_, x, {norm, 1e-6f}, weight, y);
           });
    }
  }

  // The products of layers of a model, one after the other, without their attention.
  void layers(const std::string& name, const Layer& layer, Rows rows_of_cases,
              MatrixFormat format = DType::bf16) {
    if (!wants(name)) return;
    const auto [dim, qkv_outputs, heads_inputs, inner, count] = layer;
    const auto qkv = copies(qkv_outputs, dim, format, count), out = copies(dim, heads_inputs, format, count);
    const auto up = pairs(inner, dim, count, format), down = copies(dim, inner, format, count);
    const Tensor weight = on_gpu(DType::f32, {dim});
    const RmsNorm norm{weight, 1e-6f};
    const auto elements = static_cast<double>(qkv_outputs * dim + dim * heads_inputs + 3 * inner * dim);
    for (const int64_t rows : rows_of_cases) {
      const Tensor x = on_gpu(DType::f32, {rows, dim}), heads = on_gpu(DType::bf16, {rows, heads_inputs});
      const Tensor projected(DType::f32, {rows, qkv_outputs}, kDevice),
          hidden(DType::bf16, {rows, inner}, kDevice);
      time(name + ", rows " + std::to_string(rows), count, bytes_of(format) * elements,
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
