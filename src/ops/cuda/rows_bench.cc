// Times draws, norms and look-ups on a GPU: microseconds of one call among many in a recorded step.
//   ops_cuda_rows_bench [filter]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "ops/conv1d.h"
#include "ops/cuda/stream_state.h"
#include "ops/draw.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"
#include "ops/vector_quantise.h"

namespace shoal::ops::cuda {
namespace {

constexpr Device kDevice{DeviceKind::cuda, 0};

class RowsBench {
 public:
  explicit RowsBench(const char* filter)
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

  // `bytes`: that have to be moved; 0: not told.
  void time(const std::string& name, int64_t bytes, FunctionRef<void()> call) {
    if (name.find(filter_) == std::string::npos) return;
    const StepKey key{.owner = this, .step = ++steps_};
    const auto step = [&] {
      run_step(ctx_, key, [&] {
        for (int i = 0; i < kCalls; ++i) call();
      });
    };
    for (int i = 0; i < 3; ++i) step();
    cudaEvent_t begin{}, end{};
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    const EventHandle keep_begin(begin), keep_end(end);
    std::vector<float> us;
    for (int i = 0; i < 9; ++i) {
      cudaEventRecord(begin, state_of(ctx_).stream());
      step();
      cudaEventRecord(end, state_of(ctx_).stream());
      synchronize(ctx_);
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, begin, end);
      us.push_back(1000 * milliseconds / kCalls);
    }
    std::ranges::sort(us);
    std::printf("%-52s %9.2f us", name.c_str(), us[us.size() / 2]);
    if (bytes > 0) std::printf(" %8.0f GB/s", static_cast<double>(bytes) / us[us.size() / 2] * 1e-3);
    std::printf("\n");
    graphs_.clear();
  }

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
    return resident(ctx_, std::move(host));
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
      const Tensor logits = random(DType::f32, {rows, vocabulary}, spread);
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
      const Tensor x = random(DType::f32, {rows, dim}, 1), weight = random(DType::f32, {dim}, 1);
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
    if (text_.empty()) text_ = random(DType::bf16, {kVocabulary, kDim}, 1);
    const Tensor codes = random(DType::bf16, {kCodebooks * kSize, kDim}, 1);
    const Tensor columns = ids({rows, 1 + kCodebooks}, kSize), y(DType::f32, {rows, kDim}, kDevice);
    const ColumnEmbedding embedding{text_, codes, kSize, kCodebooks, 0, kSize, true};
    time("gather_rows 1024" + times, rows * kDim * 6, [&] { gather_rows(ctx_, text_, columns, y); });
    time("gather_sum 10 of 1024" + times, rows * kDim * 24,
         [&] { gather_sum(ctx_, codes, columns.view().columns(1, 1 + kCodebooks), y); });
    time("embed_columns 1024" + times, rows * kDim * 26, [&] { embed_columns(ctx_, embedding, columns, y); });
  }

  void codes(int64_t rows) {
    for (const int64_t entries : {1024, 4096}) {
      const Tensor x = random(DType::f32, {rows, 8}, 1), directions = random(DType::f32, {entries, 8}, 1);
      const Tensor found = ids({rows}, 1);
      time("nearest_code " + std::to_string(entries) + " x " + std::to_string(rows), 0,
           [&] { nearest_code(ctx_, x, directions, found); });
    }
  }

  std::string filter_;
  ThreadTeam team_{1};
  Workspace workspace_, page_locked_;
  std::unique_ptr<Stream> stream_;
  StepGraphs graphs_;
  Context ctx_;
  std::mt19937_64 generator_{1};
  int64_t steps_ = 0;
  Tensor text_;
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  try {
    shoal::ops::cuda::RowsBench(argc > 1 ? argv[1] : "").run();
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
