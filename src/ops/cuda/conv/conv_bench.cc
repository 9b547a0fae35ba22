// Times a codec's convolutions and the kernels of large products on a GPU: microseconds of one call among
// many in a recorded step, each with weights that come from device memory.
//   ops_cuda_conv_bench [filter]        "tile": every kernel that can do a product, the chosen one marked

#include "ops/conv1d.h"
#include "ops/cuda/conv/residual_unit.h"
#include "ops/cuda/device/gpu_bench.h"
#include "ops/cuda/gemm/choose.h"
#include "ops/cuda/gemm/sm90/wide_product.h"
#include "ops/cuda/gemm/tile/tile_product.h"

namespace shoal::ops::cuda {
namespace {

class ConvBench : private GpuBench {
 public:
  explicit ConvBench(const char* filter) : GpuBench(filter, 0) {}

  void run() {
    for (const int64_t rows : {17, 32, 64, 128, 256, 512, 1024}) {
      tiles({4096, 1, 1024}, rows);
      tiles({1024, 1, 2048}, rows);
      tiles({3072, 1, 1024, true}, rows);
      tiles({1024, 1, 3072}, rows);
    }
    tiles({4096, 1, 4096}, 2048);
    wides();
    for (const int64_t streams : {1, 8, 64}) decoder(streams);
    for (const int64_t frames : {1, 2})
      for (const auto& [channels, rows] : {std::pair<int64_t, int64_t>{384, 256}, {192, 1024}})
        handover(channels, channels == 384 ? 768 : 192, 64, rows * frames);
    for (const int64_t streams : {1, 8}) encoder(streams);
  }

  // Of two language models at so many rows, and of a codec at so many frames.
  void wides() {
    for (const int64_t rows : {64, 256, 1000}) {
      wides({4096, 1, 1024}, rows);
      wides({1024, 1, 2048}, rows);
      wides({3072, 1, 1024, true}, rows);
      wides({1024, 1, 3072}, rows);
    }
    for (const int64_t rows : {32, 64, 128, 192, 200, 256, 512, 1000}) {
      wides({6144, 1, 2560}, rows);
      wides({2560, 1, 4096}, rows);
      wides({9728, 1, 2560, true}, rows);
      wides({2560, 1, 9728}, rows);
    }
    for (const int64_t frames : {1, 64}) {
      wides({768, 7, 768}, 32 * frames);
      wides({384, 7, 384}, 256 * frames);
      wides({192, 7, 192}, 1024 * frames);
      wides({96, 7, 96}, 2048 * frames);
      wides({96, 1, 96}, 2048 * frames);
      wides({6144, 2, 1536}, 4 * frames);
      wides({3072, 2, 768}, 32 * frames);
      wides({768, 2, 384}, 256 * frames);
      wides({192, 2, 192}, 1024 * frames);
    }
  }

 private:
  static constexpr int64_t kManyBytes = int64_t{200}
                                        << 20;  // of weights: several times the L2 of any GPU of today
  static constexpr int64_t kMostCopies = 40;

  // One step is `calls` calls with so many bytes of device memory and operations each.
  void time(const std::string& name, int64_t calls, double bytes, double operations,
            FunctionRef<void()> step) {
    const double median = median_us(calls, step);
    std::printf("%-52s %9.2f us %8.0f GB/s %8.1f TFLOP/s\n", name.c_str(), median, bytes / median * 1e-3,
                operations / median * 1e-6);
    std::fflush(stdout);
  }

  // The same convolution at many places.
  std::vector<PackedMatrix> copies(int64_t inputs, int64_t outputs, int64_t taps, DType dtype) {
    const Tensor weight = random(DType::bf16, {outputs, inputs, taps}, 0.03f),
                 bias = random(DType::f32, {outputs}, 0.1f);
    const int64_t bytes = inputs * outputs * taps * size_of(dtype);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < std::clamp(kManyBytes / bytes, int64_t{2}, kMostCopies); ++i)
      matrices.push_back(pack_conv1d(ctx_, weight, bias, dtype));
    return matrices;
  }

  // A product of many rows, of weights at many places. The taps of a convolution are rows that follow.
  struct Large {
    std::string name;
    std::vector<PackedMatrix> matrices;
    Tensor x, y, first_rows;
    Product product;
  };
  Large large(const MatrixShape& shape, int64_t rows) {
    const Shape weights =
        shape.taps > 1 ? Shape{shape.outputs, shape.taps, shape.depth} : Shape{shape.outputs, shape.depth};
    const Tensor weight = random(DType::bf16, weights, 0.03f);
    Large l;
    for (int64_t i = 0; i < std::clamp(kManyBytes / shape.bytes(), int64_t{2}, kMostCopies); ++i)
      l.matrices.push_back(shape.paired ? pack_gate_up(ctx_, weight, weight, DType::bf16)
                                        : pack_matrix(ctx_, weight, {}, DType::bf16));
    std::vector<int32_t> first_rows;
    for (int64_t t = 0; t < rows; ++t) first_rows.push_back(static_cast<int32_t>(t));
    l.first_rows = ints(first_rows);
    l.x = on_gpu(DType::bf16, {rows + shape.taps - 1, shape.depth});
    l.y = Tensor(DType::f32, {rows, shape.outputs}, kDevice);
    l.product = {.shape = shape,
                 .format = DType::bf16,
                 .x = l.x.view().data(),
                 .x_stride = shape.depth,
                 .rows = rows,
                 .epilogue = {.y = l.y.view().data(), .y_stride = shape.outputs}};
    if (shape.taps > 1) l.product.taps = {l.first_rows.as<int32_t>(), 1};
    return l;
  }
  static std::string name_of(const std::string& label, const MatrixShape& shape, int64_t rows) {
    return label + " " + std::to_string(shape.outputs) + (shape.paired ? " pairs" : "") +
           (shape.taps > 1 ? " k" + std::to_string(shape.taps) : "") + " x " + std::to_string(shape.depth) +
           ", rows " + std::to_string(rows);
  }
  // expected: microseconds.
  void time_large(const Large& l, const std::string& name, double expected,
                  FunctionRef<void(const Product&)> multiply) {
    const MatrixShape& shape = l.product.shape;
    char us[32];
    std::snprintf(us, sizeof us, " (%.1f)", expected);
    const double elements =
        static_cast<double>(shape.outputs * shape.taps * shape.depth * (shape.paired ? 2 : 1));
    time(name + us, static_cast<int64_t>(l.matrices.size()), 2 * elements,
         2.0 * elements * static_cast<double>(l.product.rows), [&] {
           Product product = l.product;
           for (const PackedMatrix& matrix : l.matrices) {
             product.weight = matrix.storage.view().data();
             multiply(product);
           }
         });
  }
  void time_tile(const Large& l, const std::string& name, const TileChoice& choice, bool chosen) {
    const TileShape& tile = kTileShapes[static_cast<size_t>(choice.shape)];
    time_large(l,
               name + ": " + std::to_string(tile.rows) + " x " + std::to_string(tile.outputs) + " x " +
                   std::to_string(tile.depth_groups) + (choice.split ? " split" : "") + (chosen ? " *" : ""),
               expected_us(choice, l.product.shape, l.product.rows, machine_of(ctx_)),
               [&](const Product& product) { tile_product_by(ctx_, product, choice); });
  }

  // By every tile kernel.
  void tiles(const MatrixShape& shape, int64_t rows) {
    const std::string name = name_of("tile", shape, rows);
    if (!wants(name)) return;
    const Large l = large(shape, rows);
    const Machine machine = machine_of(ctx_);
    const TileChoice chosen = choose_tile(shape, rows, machine);
    for (int i = 0; i < 2 * static_cast<int>(kTileShapes.size()); ++i)
      if (const TileChoice choice{i / 2, i % 2 == 1}; can_do(choice, shape, rows, machine))
        time_tile(l, name, choice, choice == chosen);
  }

  // By the best tile kernel and every wide one.
  void wides(const MatrixShape& shape, int64_t rows) {
    const std::string name = name_of("wide", shape, rows);
    if (!wants(name) || !has_wgmma(ctx_)) return;
    const Large l = large(shape, rows);
    const Machine machine = machine_of(ctx_);
    if (shape.taps > 1) {
      Large one = large(shape, rows);
      one.product.taps.first_rows = nullptr;
      for (const int i : {0, 1, 2})
        if (const WideChoice choice{i, 1}; can_do(choice, shape, machine))
          time_large(one,
                     name + ", one signal: " + std::to_string(kWideShapes[static_cast<size_t>(i)].outputs),
                     expected_us(choice, shape, rows, machine),
                     [&](const Product& product) { wide_product_by(ctx_, product, choice); });
    }
    time_tile(l, name + ", tile", choose_tile(shape, rows, machine), !is_wide(shape, rows, machine));
    const WideChoice chosen = choose_wide(shape, rows, machine);
    for (int shape_index = 0; shape_index < static_cast<int>(kWideShapes.size()); ++shape_index) {
      for (const int cluster : {1, 2, 4, 8}) {
        const WideChoice choice{shape_index, cluster};
        if (!can_do(choice, shape, machine)) continue;
        const WideShape& wide = kWideShapes[static_cast<size_t>(shape_index)];
        time_large(l,
                   name + ": " + std::to_string(wide.rows()) + " x " + std::to_string(wide.outputs) + " / " +
                       std::to_string(cluster) + (choice == chosen ? " *" : ""),
                   expected_us(choice, shape, rows, machine),
                   [&](const Product& product) { wide_product_by(ctx_, product, choice); });
      }
    }
  }

  // `streams` sequences of `rows` rows each.
  struct Streams {
    std::vector<int32_t> host_offsets;
    Tensor offsets, slots, pool;
    int64_t count = 0, rows = 0;
    ConvRows conv_rows() const { return {{host_offsets}, offsets, slots, 1}; }
    ConvHistory history() const { return {pool, 0, {}}; }
  };
  Streams streams_of(int64_t count, int64_t rows, int64_t history_floats) {
    Streams s;
    std::vector<int32_t> slots;
    for (int64_t i = 0; i <= count; ++i) s.host_offsets.push_back(static_cast<int32_t>(i * rows));
    for (int64_t i = 0; i < count; ++i) slots.push_back(static_cast<int32_t>(i));
    s.offsets = ints(s.host_offsets);
    s.slots = ints(slots);
    s.pool = Tensor::zeros(DType::f32, {count, std::max<int64_t>(4, history_floats)}, kDevice);
    s.count = count, s.rows = rows;
    return s;
  }

  struct Conv {
    int64_t inputs, outputs, taps;
    DType dtype = DType::bf16;
    bool snake = true;
    Activation activation = Activation::none;
  };

  void conv(const std::string& label, const Conv& c, int64_t streams, int64_t rows) {
    const std::string name = label + " " + std::to_string(c.inputs) + " -> " + std::to_string(c.outputs) +
                             " k" + std::to_string(c.taps) + ", " + std::to_string(streams) + " x " +
                             std::to_string(rows);
    if (!wants(name)) return;
    const auto weights = copies(c.inputs, c.outputs, c.taps, c.dtype);
    const Streams s = streams_of(streams, rows, (c.taps - 1) * c.inputs);
    const Tensor x = on_gpu(DType::f32, {streams * rows, c.inputs}),
                 y(DType::f32, {streams * rows, c.outputs}, kDevice), alpha = on_gpu(DType::f32, {c.inputs});
    const auto elements = static_cast<double>(c.inputs * c.outputs * c.taps),
               all = static_cast<double>(streams * rows);
    time(name, static_cast<int64_t>(weights.size()),
         elements * static_cast<double>(size_of(c.dtype)) +
             4 * all * static_cast<double>(c.inputs + c.outputs),
         2 * elements * all, [&] {
           for (const PackedMatrix& weight : weights)
             causal_conv1d(ctx_, {x, s.conv_rows(), s.history(), c.snake ? alpha.view() : TensorView()},
                           weight, 1, y, {.activation = c.activation});
         });
  }

  void unit(const std::string& label, int64_t channels, int64_t dilation, int64_t streams, int64_t rows) {
    const std::string name = label + " residual unit " + std::to_string(channels) + " d" +
                             std::to_string(dilation) + ", " + std::to_string(streams) + " x " +
                             std::to_string(rows);
    if (!wants(name)) return;
    const auto wide = copies(channels, channels, 7, DType::bf16),
               narrow = copies(channels, channels, 1, DType::bf16);
    const Streams s = streams_of(streams, rows, 6 * dilation * channels);
    const Tensor x = Tensor::zeros(DType::f32, {streams * rows, channels}, kDevice),
                 alpha = on_gpu(DType::f32, {channels});
    const auto calls = static_cast<int64_t>(std::min(wide.size(), narrow.size()));
    const auto elements = static_cast<double>(8 * channels * channels),
               all = static_cast<double>(streams * rows);
    const auto convs = [&](size_t i) { return ResidualConvs{&wide[i], dilation, &narrow[i], alpha, alpha}; };
    time(name, calls, 2 * elements + 8 * all * static_cast<double>(channels), 2 * elements * all, [&] {
      for (size_t i = 0; i < static_cast<size_t>(calls); ++i)
        residual_unit(ctx_, x, s.conv_rows(), s.history(), convs(i), x);
    });
    const Tensor y(DType::f32, x.shape(), kDevice);
    for (const UnitKernel kernel : {UnitKernel::wgmma, UnitKernel::mma}) {
      if (!can_do(kernel, convs(0), machine_of(ctx_))) continue;
      time(name + (kernel == UnitKernel::wgmma ? ", by wgmma" : ", by mma"), calls,
           2 * elements + 8 * all * static_cast<double>(channels), 2 * elements * all, [&] {
             for (size_t i = 0; i < static_cast<size_t>(calls); ++i)
               residual_unit_at_once(ctx_, kernel, {x, s.conv_rows(), s.history(), alpha}, convs(i), y);
           });
    }
  }

  // A unit and the convolution behind it, which makes `outputs` of two rows: by way of f32 rows, of ready
  // ones, and the unit that makes these alone.
  void handover(int64_t channels, int64_t outputs, int64_t streams, int64_t rows) {
    const std::string name = "handover " + std::to_string(channels) + " -> " + std::to_string(outputs) +
                             " k2, " + std::to_string(streams) + " x " + std::to_string(rows);
    if (!wants(name)) return;
    const auto wide = copies(channels, channels, 7, DType::bf16),
               narrow = copies(channels, channels, 1, DType::bf16),
               next = copies(channels, outputs, 2, DType::bf16);
    const Streams s = streams_of(streams, rows, 6 * channels), of_next = streams_of(streams, rows, channels);
    const int64_t all = streams * rows;
    const Tensor x = Tensor::zeros(DType::f32, {all, channels}, kDevice), f32(DType::f32, x.shape(), kDevice),
                 ready = Tensor::zeros(DType::bf16, {all + streams, channels}, kDevice),
                 y(DType::f32, {all, outputs}, kDevice), alpha = on_gpu(DType::f32, {channels});
    const auto calls = static_cast<int64_t>(std::min({wide.size(), narrow.size(), next.size()}));
    const auto elements = static_cast<double>(8 * channels * channels + 2 * channels * outputs);
    const auto each = [&](const std::string& way, FunctionRef<void(size_t, const ResidualConvs&)> what) {
      time(name + way, calls, 2 * elements, 2 * elements * static_cast<double>(all), [&] {
        for (size_t i = 0; i < static_cast<size_t>(calls); ++i)
          what(i, ResidualConvs{&wide[i], 1, &narrow[i], alpha, alpha});
      });
    };
    const auto read = [&](size_t i, TensorView from) {
      causal_conv1d(ctx_, {from, of_next.conv_rows(), of_next.history(), alpha}, next[i], 1, y);
    };
    each(", f32 rows", [&](size_t i, const ResidualConvs& convs) {
      residual_unit(ctx_, x, s.conv_rows(), s.history(), convs, f32);
      read(i, f32);
    });
    const auto make_ready = [&](size_t i, const ResidualConvs& convs) {
      residual_unit_for(ctx_, x, s.conv_rows(), s.history(), convs, {&next[i], alpha, 1}, ready);
    };
    each(", ready rows", [&](size_t i, const ResidualConvs& convs) {
      make_ready(i, convs);
      read(i, ready);
    });
    each(", ready rows, unit alone", make_ready);
  }

  // One frame of so many streams.
  void decoder(int64_t streams) {
    conv("decoder", {1024, 1536, 7, DType::bf16, false}, streams, 4);
    int64_t rows = 4, channels = 1536;
    for (const int64_t stride : {8, 8, 4, 2}) {
      conv("decoder", {channels, channels / 2 * stride, 2}, streams, rows);
      rows *= stride, channels /= 2;
      for (const int64_t dilation : {1, 9}) unit("decoder", channels, dilation, streams, rows);
    }
    conv("decoder", {96, 1, 7, DType::f32, true, Activation::tanh}, streams, rows);
  }

  // A second of sound of so many streams.
  void encoder(int64_t streams) {
    int64_t rows = 45056, channels = 64;
    conv("encoder", {1, 64, 7, DType::f32, false}, streams, rows);
    for (const int64_t stride : {2, 4, 8, 8}) {
      unit("encoder", channels, 1, streams, rows);
      conv("encoder", {channels * stride, 2 * channels, 2}, streams, rows / stride);
      rows /= stride, channels *= 2;
    }
    depthwise(1024, streams, 88);
  }

  void depthwise(int64_t channels, int64_t streams, int64_t rows) {
    const std::string name = "depthwise " + std::to_string(channels) + ", " + std::to_string(streams) +
                             " x " + std::to_string(rows);
    if (!wants(name)) return;
    const Streams s = streams_of(streams, rows, 6 * channels);
    const Tensor x = on_gpu(DType::f32, {streams * rows, channels}),
                 y(DType::f32, {streams * rows, channels}, kDevice),
                 weight = on_gpu(DType::f32, {7, channels}), bias = on_gpu(DType::f32, {channels});
    const double elements = static_cast<double>(streams * rows * channels);
    time(name, 20, 8 * elements, 14 * elements, [&] {
      for (int i = 0; i < 20; ++i)
        depthwise_conv1d(ctx_, {x, s.conv_rows(), s.history(), {}}, weight, bias, y);
    });
  }
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  return shoal::ops::cuda::run_bench<shoal::ops::cuda::ConvBench>(argc, argv);
}
