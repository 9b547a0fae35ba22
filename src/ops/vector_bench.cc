// Times the vector kernels and ops on one core.   ops_vector_bench [isa ...]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <time.h>
#include <vector>

#include "base/function_ref.h"
#include "ops/attention.h"
#include "ops/conv1d.h"
#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu_features.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/segment_norm.h"
#include "ops/vector_quantise.h"

namespace shoal::ops {
namespace {

// The thread's own time: what others run on the same core is not counted.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of the fastest call within about a fifth of a second: the speed of the kernel on an idle machine.
double seconds_of(FunctionRef<void()> call) {
  double fastest = 1e9;
  const double start = cpu_seconds();
  for (int calls = 0; calls < 5 || cpu_seconds() - start < 0.2; ++calls) {
    const double before = cpu_seconds();
    call();
    fastest = std::min(fastest, cpu_seconds() - before);
  }
  return fastest;
}

void report(const char* name, double value, const char* unit) {
  std::printf("  %-44s %10.3f %s\n", name, value, unit);
}

Tensor random_tensor(DType dtype, Shape shape, float scale) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, scale);
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = normal(generator);
    if (dtype == DType::bf16)
      tensor.as<Bf16>()[i] = float_to_bf16(value);
    else
      tensor.as<float>()[i] = value;
  }
  return tensor;
}

struct Bench {
  ThreadTeam team{1};
  Workspace workspace;
  Context ctx{.device = {}, .team = &team, .workspace = &workspace, .stream = nullptr};

  void element_wise() {
    constexpr int64_t kCount = 1 << 13;
    const Tensor x = random_tensor(DType::f32, {kCount}, 3), z = random_tensor(DType::f32, {kCount}, 1);
    const Tensor y(DType::f32, {kCount}), narrow(DType::bf16, {kCount});
    const VectorKernels& k = vector_kernels();
    const float *a = x.as<float>(), *b = z.as<float>();
    float* out = y.as<float>();
    const auto row = [&](const char* name, FunctionRef<void()> call) {
      report(name, seconds_of(call) / kCount * 1e9, "ns/element");
    };
    row("snake", [&] { k.snake(a, b, out, kCount); });
    row("snake_bf16", [&] { k.snake_bf16(a, b, narrow.as<Bf16>(), kCount); });
    row("swiglu", [&] { k.swiglu(a, b, out, kCount); });
    row("gelu", [&] { k.gelu(a, out, kCount); });
    row("round_bf16", [&] { k.round_bf16(a, narrow.as<Bf16>(), kCount); });
    row("rms_norm 1024", [&] {
      for (int64_t i = 0; i < kCount; i += 1024) k.rms_norm(a + i, b, 1e-6f, out + i, 1024);
    });
    row("layer_norm 1024", [&] {
      for (int64_t i = 0; i < kCount; i += 1024) k.layer_norm(a + i, b, b, 1e-6f, out + i, 1024);
    });
  }

  // rows new rows of one sequence that ends at position `keys`; S1-mini's slow layers.
  void attention(DType dtype, int64_t rows, int64_t keys, const char* name) {
    const HeadLayout layout{16, 8, 128};
    constexpr int64_t kPage = 32, kLayers = 8;
    const int64_t pages = (keys + kPage - 1) / kPage;
    const KvLayer& cache = cache_of(dtype, pages * kLayers);
    const Tensor qkv = random_tensor(DType::f32, {rows, layout.qkv_width()}, 1);
    const Tensor out(DType::f32, {rows, layout.heads * layout.head_dim});
    std::vector<int32_t> offsets = {0, static_cast<int32_t>(rows)}, positions, table;
    double flops = 0;
    for (int64_t i = 0; i < rows; ++i) {
      positions.push_back(static_cast<int32_t>(keys - rows + i));
      flops += 4.0 * static_cast<double>((keys - rows + i + 1) * layout.heads * layout.head_dim);
    }
    for (int64_t i = 0; i < pages * kLayers; ++i) table.push_back(static_cast<int32_t>(i));
    int64_t layer =
        0;  // as in a model, the keys and values of a layer have left the caches when it comes again
    const double seconds = seconds_of([&] {
      const BatchPlan plan{
          {offsets},
          positions,
          std::span(table).subspan(static_cast<size_t>(layer * pages), static_cast<size_t>(pages)),
          pages,
          kPage};
      paged_attention(ctx, qkv, layout, plan, cache, 0, out);
      layer = (layer + 1) % kLayers;
    });
    report(name, flops / seconds * 1e-9, "GFLOP/s");
    const double bytes = static_cast<double>(2 * keys * layout.kv_heads * layout.head_dim * size_of(dtype));
    if (rows == 1) report("    its keys and values", bytes / seconds * 1e-9, "GB/s");
  }

  void draw(const Tensor& logits, SampleRow row, const char* name) {
    const std::vector<int32_t> penalised = {1, 2, 3, 4};
    row.penalised = penalised;
    row.repetition_penalty = 1.1f;
    int32_t token = 0;
    const double seconds = seconds_of([&] {
      ++row.frame;
      sample(ctx, logits, {&row, 1}, {&token, 1});
    });
    report(name, seconds * 1e6, "us");
  }

  void sampling() {
    constexpr int64_t kVocab = 155'776, kText = 151'000;
    const Tensor peaked = random_tensor(DType::f32, {1, kVocab}, 3);
    const Tensor flat = random_tensor(DType::f32, {1, kVocab}, 1);
    draw(peaked, {}, "sample 155776, peaked");
    draw(flat, {}, "sample 155776, flat");
    draw(random_tensor(DType::f32, {1, kVocab}, 0.01f), {}, "sample 155776, nearly uniform");
    draw(flat, {.top_k = 30}, "sample 155776, flat, top 30");
    draw(flat, {.top_p = kGreedyTopP}, "sample 155776, greedy");
    draw(flat, {.allowed_begin = kText, .allowed_end = kVocab - 1}, "sample 155776, 4776 allowed");
    for (int64_t i = 0; i < kText; ++i) peaked.as<float>()[i] -= 40;  // text tokens are suppressed in speech
    draw(peaked, {}, "sample 155776, most without weight");
    for (int64_t i = 0; i < kVocab; ++i) flat.as<float>()[i] = std::round(4 * flat.as<float>()[i]) / 4;
    draw(flat, {}, "sample 155776, flat, ties");
    draw(random_tensor(DType::f32, {1, 4097}, 3), {}, "sample 4097");
    draw(random_tensor(DType::f32, {1, 1024}, 3), {}, "sample 1024");
  }

  void codes() {
    constexpr int64_t kRows = 64, kEntries = 4096;
    const Tensor x = random_tensor(DType::f32, {kRows, 8}, 1),
                 directions = random_tensor(DType::f32, {kEntries, 8}, 1);
    const Tensor found(DType::i32, {kRows});
    const double seconds = seconds_of([&] { nearest_code(ctx, x, directions, found); });
    report("nearest_code 4096 x 8", seconds / kRows * 1e6, "us/row");
  }

  // One utterance of 8 s: AdaIN and the snake, as before every convolution of Kokoro's generator.
  void norm_utterance(int32_t rows, int64_t channels, const char* name) {
    const int32_t start = 0;
    const Segments segments{.starts = {&start, 1}, .frames = {&rows, 1}, .total = rows};
    const Tensor x = random_tensor(DType::f32, {rows, channels}, 1), y(DType::f32, {rows, channels});
    const Tensor style = random_tensor(DType::f32, {1, 2 * channels}, 1);
    const Tensor alpha = random_tensor(DType::f32, {channels}, 1);
    const double seconds =
        seconds_of([&] { adain(ctx, x, segments, style, 1e-5f, {.snake_alpha = alpha}, y); });
    report(name, seconds / static_cast<double>(rows * channels) * 1e9, "ns/element");
  }

  void run() {
    element_wise();
    norm_utterance(38521, 128, "adain, snake 38521 x 128");
    norm_utterance(6420, 256, "adain, snake 6420 x 256");
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::printf("  attention, 16 heads, 8 kv, 128, %s\n", std::string(name_of(dtype)).c_str());
      attention(dtype, 1, 500, "  decode, 500 keys");
      attention(dtype, 1, 4000, "  decode, 4000 keys");
      attention(dtype, 1000, 1000, "  prefill, 1000 rows");
    }
    sampling();
    codes();
  }

 private:
  const KvLayer& cache_of(DType dtype, int64_t pages) {
    keys_ = random_tensor(dtype, {pages, 8, 32, 128}, 1);
    values_ = random_tensor(dtype, {pages, 8, 32, 128}, 1);
    cache_ = {keys_, values_};
    return cache_;
  }

  Tensor keys_, values_;
  KvLayer cache_;
};

}  // namespace
}  // namespace shoal::ops

int main(int argc, char** argv) {
  std::vector<shoal::ops::CpuIsa> isas;
  for (int i = 1; i < argc; ++i)
    if (const auto isa = shoal::ops::parse_cpu_isa(argv[i])) isas.push_back(*isa);
  if (isas.empty()) isas.push_back(shoal::ops::cpu_isa());
  for (const shoal::ops::CpuIsa isa : isas) {
    shoal::ops::set_cpu_isa(isa);
    std::printf("%s\n", std::string(shoal::ops::name_of(isa)).c_str());
    shoal::ops::Bench().run();
  }
}
