// Times draws, norms and look-ups on a GPU: microseconds of one call among many in a recorded step.
//   ops_cuda_rows_bench [filter]
#include <cstring>

#include "ops/conv1d.h"
#include "ops/cuda/device/gpu_bench.h"
#include "ops/draw.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/vector_quantise.h"

namespace shoal::ops::cuda {
namespace {

class RowsBench : private GpuBench {
 public:
  explicit RowsBench(const char* filter) : GpuBench(filter, 1) {}

  void run() {
    for (const int64_t rows : {1, 64, 256}) {
      draws(rows, 1024);
      draws(rows, 4097);
      draws(rows, 155'776);
    }
    for (const int64_t rows : {1, 64, 256, 4096}) norms(rows);
    for (const int64_t rows : {1, 64, 256, 2048}) look_ups(rows);
    for (const int64_t rows : {64, 2048}) codes(rows);
  }

 private:
  static constexpr int kCalls = 100;  // of a recorded step

  // `bytes`: the bytes that must be moved; 0: not printed.
  void time(const std::string& name, int64_t bytes, FunctionRef<void()> call) {
    if (!wants(name)) return;
    const double median = median_us(kCalls, [&] {
      for (int i = 0; i < kCalls; ++i) call();
    });
    std::printf("%-52s %9.2f us", name.c_str(), median);
    if (bytes > 0) std::printf(" %8.0f GB/s", static_cast<double>(bytes) / median * 1e-3);
    std::printf("\n");
  }

  Tensor ids(Shape shape, int32_t below) {
    Tensor host(DType::i32, shape);
    for (int64_t i = 0; i < host.elements(); ++i)
      host.as<int32_t>()[i] = static_cast<int32_t>(generator_() % static_cast<uint64_t>(below));
    return resident(ctx_, std::move(host));
  }

  void draws(int64_t rows, int64_t vocabulary) {
    constexpr int64_t kCodebooks = 10, kMost = 16;
    const Tensor codes = ids({rows, kCodebooks, kMost}, static_cast<int32_t>(vocabulary));
    const Tensor frames = ids({rows, 1 + kCodebooks}, 1);
    const auto draw = [&](const char* how, float spread, const DrawRow& row) {
      const Tensor logits = on_gpu(DType::f32, {rows, vocabulary}, spread);
      Tensor host(DType::u8, {rows, static_cast<int64_t>(sizeof(DrawRow))});
      for (int64_t i = 0; i < rows; ++i) {
        DrawRow own = row;
        own.seed = generator_();
        std::memcpy(host.view().row<uint8_t>(i), &own, sizeof own);
      }
      const Tensor settings = resident(ctx_, std::move(host));
      const DrawTable table{settings, codes};
      time("draw " + std::to_string(vocabulary) + " x " + std::to_string(rows) + ", " + how, 0,
           [&] { draw_codes(ctx_, logits, table, 1, frames); });
    };
    draw("greedy", 3, {.top_p = kGreedyTopP});
    draw("everything kept", 3, {.top_p = 1});
    draw("top_p 0.8", 3, {});
    draw("top_p 0.8, flat", 0.5f, {});
    draw("top_p 0.8, penalties", 3, {.repetition_penalty = 1.1f, .penalised_codes = kMost});
    draw("top_p 0.01, flat", 0.5f, {.top_p = 0.01f});
    draw("top_k 30", 3, {.top_k = 30, .top_p = 1});
  }

  void norms(int64_t rows) {
    const std::string times = " x " + std::to_string(rows);
    for (const int64_t dim : {1024, 2560}) {
      const Tensor x = on_gpu(DType::f32, {rows, dim}, 1), weight = on_gpu(DType::f32, {dim}, 1);
      const Tensor y(DType::f32, {rows, dim}, kDevice);
      const int64_t bytes = 2 * x.bytes();
      time("rms_norm " + std::to_string(dim) + times, bytes, [&] { rms_norm(ctx_, x, weight, 1e-6f, y); });
      time("layer_norm " + std::to_string(dim) + times, bytes,
           [&] { layer_norm(ctx_, x, weight, weight, 1e-6f, y); });
      time("snake " + std::to_string(dim) + times, bytes, [&] { snake(ctx_, x, weight, y); });
    }
  }

  void look_ups(int64_t rows) {
    constexpr int64_t kDim = 1024, kCodebooks = 10, kSize = 4096, kVocabulary = 32'768;
    const std::string times = " x " + std::to_string(rows);
    if (text_.empty()) text_ = on_gpu(DType::bf16, {kVocabulary, kDim}, 1);
    const Tensor codes = on_gpu(DType::bf16, {kCodebooks * kSize, kDim}, 1);
    const Tensor columns = ids({rows, 1 + kCodebooks}, kSize), y(DType::f32, {rows, kDim}, kDevice);
    const ColumnEmbedding embedding{text_, codes, kSize, kCodebooks, 0, kSize, true};
    time("gather_rows 1024" + times, rows * kDim * 6, [&] { gather_rows(ctx_, text_, columns, y); });
    time("gather_sum 10 of 1024" + times, rows * kDim * 24,
         [&] { gather_sum(ctx_, codes, columns.view().columns(1, 1 + kCodebooks), y); });
    time("embed_columns 1024" + times, rows * kDim * 26, [&] { embed_columns(ctx_, embedding, columns, y); });
  }

  void codes(int64_t rows) {
    for (const int64_t entries : {1024, 4096}) {
      const Tensor x = on_gpu(DType::f32, {rows, 8}, 1), directions = on_gpu(DType::f32, {entries, 8}, 1);
      const Tensor found = ids({rows}, 1);
      time("nearest_code " + std::to_string(entries) + " x " + std::to_string(rows), 0,
           [&] { nearest_code(ctx_, x, directions, found); });
    }
  }

  Tensor text_;
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  return shoal::ops::cuda::run_bench<shoal::ops::cuda::RowsBench>(argc, argv);
}
