// Times the ops that run along utterances on a GPU, at Kokoro's sizes: microseconds of one call among many in
// a recorded step.
//   ops_cuda_sequence_bench [filter]
#include <array>

#include "ops/cuda/device/gpu_bench.h"
#include "ops/harmonic_source.h"
#include "ops/linear.h"
#include "ops/lstm.h"
#include "ops/segment_norm.h"
#include "ops/self_attention.h"
#include "ops/short_stft.h"
#include "ops/snake_block.h"

namespace shoal::ops::cuda {
namespace {

// Utterances of equal length, two frames apart.
struct Utterances {
  std::vector<int32_t> starts, frames;
  int64_t total = 2;
  Tensor tables;

  Utterances(Context& ctx, int count, int32_t length) {
    for (int i = 0; i < count; ++i, total += length + 2) {
      starts.push_back(static_cast<int32_t>(total));
      frames.push_back(length);
    }
    Tensor host(DType::i32, {2, count});
    std::ranges::copy(starts, host.as<int32_t>());
    std::ranges::copy(frames, host.as<int32_t>() + count);
    tables = resident(ctx, std::move(host));
  }
  Segments at(int64_t rate, int64_t extra = 0) const {
    return {
        .starts = starts, .frames = frames, .total = total, .rate = rate, .extra = extra, .tables = tables};
  }
};

class SequenceBench : private GpuBench {
 public:
  explicit SequenceBench(const char* filter) : GpuBench(filter, 1) {}

  void run() {
    for (const int32_t rows : {107, 320})
      for (const int count : {1, 4, 16, 64}) lstm(count, rows);
    // PLBERT's products of an utterance of 107 phonemes, and of 16.
    for (const int64_t rows : {112, 1760}) {
      product(rows, 768, 2304);
      product(rows, 768, 768);
      product(rows, 768, 2048);
      product(rows, 2048, 768);
    }
    for (const int count : {1, 16}) {
      for (const int32_t rows : {107, 512}) attention(count, rows);
      // 8 s of speech: 320 frames, at the rates of the decoder and of the generator's stages.
      for (const auto& [rate, channels] :
           {std::pair<int64_t, int64_t>{1, 1090}, {2, 512}, {20, 256}, {120, 128}})
        rows_of(count, rate, channels);
      sound(count);
    }
    for (const int count : {1, 3, 8})
      for (const int64_t taps : {3, 7, 11}) {
        snakes(count, 20, 256, taps);
        snakes(count, 120, 128, taps);
      }
  }

 private:
  static constexpr int kCalls = 20;  // of a recorded step

  // `bytes`: the bytes that must be moved at least; 0: not printed.
  double time(const std::string& name, int64_t bytes, FunctionRef<void()> call) {
    if (!wants(name)) return 0;
    const double median = median_us(kCalls, [&] {
      for (int i = 0; i < kCalls; ++i) call();
    });
    std::printf("%-52s %9.2f us", name.c_str(), median);
    if (bytes > 0) std::printf(" %8.0f GB/s", static_cast<double>(bytes) / median * 1e-3);
    std::printf("\n");
    std::fflush(stdout);
    return median;
  }

  void lstm(int count, int32_t rows) {
    constexpr int64_t kInputs = 640, kHidden = 256;
    const std::string name = "lstm 640 -> 256, " + std::to_string(count) + " x " + std::to_string(rows);
    if (!wants(name)) return;
    const Tensor ih = random(DType::f32, {4 * kHidden, kInputs}, 0.04f),
                 hh = random(DType::f32, {4 * kHidden, kHidden}, 0.06f),
                 bias = random(DType::f32, {4 * kHidden}, 0.1f);
    const LstmDirection direction{ih, hh, bias, bias};
    const PackedLstm packed = pack_lstm(ctx_, direction, direction, DType::f32);
    const Utterances utterances(ctx_, count, rows);
    const Tensor x = on_gpu(DType::f32, {utterances.total, kInputs});
    const Tensor y(DType::f32, {utterances.total, 2 * kHidden}, kDevice);
    const Tensor products(DType::f32, {utterances.total, packed.input.outputs}, kDevice);
    const double all = time(name, 0, [&] { bidirectional_lstm(ctx_, x, utterances.at(1), packed, y); });
    const double inputs = time(name + ", its product", 0, [&] { linear(ctx_, x, packed.input, products); });
    std::printf("%-52s %9.3f us\n", "  a step", (all - inputs) / rows);
  }

  void product(int64_t rows, int64_t inputs, int64_t outputs) {
    const std::string name = "linear f32 " + std::to_string(inputs) + " -> " + std::to_string(outputs) +
                             " x " + std::to_string(rows);
    if (!wants(name)) return;
    const PackedMatrix weight = pack_matrix(ctx_, random(DType::f32, {outputs, inputs}, 0.03f),
                                            random(DType::f32, {outputs}, 0.1f), DType::f32);
    const Tensor x = on_gpu(DType::f32, {rows, inputs}), y(DType::f32, {rows, outputs}, kDevice);
    const double us = time(name, 0, [&] { linear(ctx_, x, weight, y); });
    std::printf("%-52s %9.1f TFLOP/s\n", "", 2e-6 * static_cast<double>(rows * inputs * outputs) / us);
  }

  void attention(int count, int32_t rows) {
    const Utterances utterances(ctx_, count, rows);
    const Tensor qkv = on_gpu(DType::f32, {utterances.total, 3 * 768});
    const Tensor out(DType::f32, {utterances.total, 768}, kDevice);
    time("self_attention 12 x 64, " + std::to_string(count) + " x " + std::to_string(rows), 0,
         [&] { self_attention(ctx_, qkv, 12, utterances.at(1), out); });
  }

  void rows_of(int count, int64_t rate, int64_t channels) {
    const Utterances utterances(ctx_, count, 320);
    const Segments segments = utterances.at(rate);
    const std::string sizes = " " + std::to_string(channels) + " channels, " + std::to_string(count) + " x " +
                              std::to_string(320 * rate);
    if (!wants("adain" + sizes) && !wants("segment_sum" + sizes) && !wants("double_rows" + sizes)) return;
    const int64_t rows = segments.total_rows();
    const Tensor x = on_gpu(DType::f32, {rows, channels}), alpha = on_gpu(DType::f32, {channels});
    const Tensor style = on_gpu(DType::f32, {count, 2 * channels}),
                 weight = on_gpu(DType::f32, {3, channels});
    const Tensor y(DType::f32, {rows, channels}, kDevice), narrow(DType::bf16, {rows, channels}, kDevice);
    const SegmentActivation snake{.snake_alpha = alpha};
    time("adain snake" + sizes, 3 * x.bytes(), [&] { adain(ctx_, x, segments, style, 1e-5f, snake, y); });
    time("adain snake to bf16" + sizes, 2 * x.bytes() + narrow.bytes(),
         [&] { adain(ctx_, x, segments, style, 1e-5f, snake, narrow); });
    time("adain leaky" + sizes, 3 * x.bytes(),
         [&] { adain(ctx_, x, segments, style, 1e-5f, {.slope = 0.2f}, y); });
    const std::array<TensorView, 2> terms = {x, y};
    time("segment_sum" + sizes, 3 * x.bytes(), [&] { segment_sum(ctx_, terms, segments, 1, 1, y); });
    const Tensor twice(DType::f32, {2 * rows, channels}, kDevice);
    time("double_rows" + sizes, 3 * x.bytes(), [&] { double_rows(ctx_, x, segments, weight, alpha, twice); });
  }

  // A block of three units of 8 s of speech each.
  void snakes(int count, int64_t rate, int64_t channels, int64_t taps) {
    const std::string name = "snake_block " + std::to_string(channels) + " channels, " +
                             std::to_string(taps) + " taps, " + std::to_string(count) + " x 8 s";
    if (!wants(name)) return;
    const Utterances utterances(ctx_, count, 320);
    const Segments segments = utterances.at(rate);
    const Tensor x = on_gpu(DType::f32, {segments.total_rows(), channels}),
                 alpha = on_gpu(DType::f32, {channels}), style = on_gpu(DType::f32, {count, 2 * channels});
    const Tensor y(DType::f32, x.shape(), kDevice);
    const PackedMatrix conv = pack_conv1d(ctx_, random(DType::f32, {channels, channels, taps}, 0.02f),
                                          random(DType::f32, {channels}, 0.1f), DType::bf16);
    std::vector<SnakeUnit> units;
    for (const int64_t dilation : {1, 3, 5})
      units.push_back({{style, alpha, &conv, dilation}, {style, alpha, &conv, 1}});
    const double us = time(name, 0, [&] { snake_block(ctx_, x, segments, units, 1e-5f, y); });
    std::printf("%-52s %9.1f TFLOP/s\n", "",
                12e-6 * static_cast<double>(segments.total_rows() * channels * channels * taps) / us);
  }

  void sound(int count) {
    const Utterances utterances(ctx_, count, 320);
    const int64_t total = utterances.total;
    const std::string of = ", " + std::to_string(count) + " x 8 s";
    const std::vector<uint64_t> seeds(static_cast<size_t>(count), 1);
    Tensor table(DType::i64, {count});
    std::ranges::fill(table.span<int64_t>(), 1);
    const Tensor seed_table = resident(ctx_, std::move(table));
    const Tensor f0 = on_gpu(DType::f32, {total * 2}, 200), weights = on_gpu(DType::f32, {kHarmonics}, 0.3f);
    const Tensor bias = on_gpu(DType::f32, {1}, 0.1f), wave(DType::f32, {total * 600}, kDevice);
    const Tensor spectra(DType::f32, {total * 120, 22}, kDevice),
        drawn = on_gpu(DType::f32, {total * 120, 22});
    const SourceNoise noise{.seeds = seeds, .seed_table = seed_table};
    time("harmonic_source" + of, wave.bytes(),
         [&] { harmonic_source(ctx_, {weights, bias}, f0, utterances.at(2), noise, wave); });
    time("short_stft" + of, wave.bytes() + spectra.bytes(),
         [&] { short_stft(ctx_, {}, wave, utterances.at(120, 1), spectra); });
    time("inverse_short_stft" + of, wave.bytes() + spectra.bytes(),
         [&] { inverse_short_stft(ctx_, {}, drawn, utterances.at(120, 1), wave); });
  }
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  return shoal::ops::cuda::run_bench<shoal::ops::cuda::SequenceBench>(argc, argv);
}
