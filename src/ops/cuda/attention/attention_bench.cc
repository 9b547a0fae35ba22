// Times attend() on a GPU: microseconds per call within a CUDA graph of many calls, each on its own layer so
// that keys and values come from memory as in a model. ops_cuda_attention_bench [filter]      "splits": the
// best split of the chunks of decode rows
#include <numeric>

#include "ops/cuda/attention/attention_kernels.h"
#include "ops/cuda/device/gpu_bench.h"

namespace shoal::ops::cuda {
namespace {

// `rows` new rows of a sequence that then has `positions`.
struct Part {
  int64_t rows, positions;
};

struct Shapes {
  HeadLayout layout;
  DType cache;
  int64_t page_size = 16;
  int64_t window = 0;
  bool normed = true;
};

constexpr Shapes kSlow{{16, 8, 128}, DType::bf16};
constexpr Shapes kSlowInt8{{16, 8, 128}, DType::i8};
constexpr Shapes kS2{{32, 8, 128}, DType::bf16};
constexpr Shapes kFast{{16, 8, 64}, DType::f32, 10};
constexpr Shapes kCodec{{16, 16, 64}, DType::bf16, 16, 128, false};

class AttentionBench : private GpuBench {
 public:
  explicit AttentionBench(const char* filter) : GpuBench(filter, 1) {}

  void run() {
    slow("", kSlow);
    slow("int8 ", kSlowInt8);
    for (const int64_t batch : {1, 64, 256})
      for (const int64_t positions : {1, 10})
        attends("fast b" + std::to_string(batch) + " at " + std::to_string(positions), kFast,
                parts(batch, {1, positions}));
    attends("fast b64, 2 rows", kFast, parts(64, {2, 2}));
    for (const int64_t streams : {1, 16, 64})
      attends("codec " + std::to_string(streams) + " x 4 rows at 200", kCodec, parts(streams, {4, 200}));
    attends("codec 1 x 2000 rows", kCodec, {{2000, 2000}});
    for (const int64_t rows : {200, 1000}) attends("s2 prefill " + std::to_string(rows), kS2, {{rows, rows}});
    for (const int64_t prompts : {1, 2, 3, 5, 10}) {
      attends("prefill " + std::to_string(prompts) + " x 411", kSlow, parts(prompts, {411, 411}));
      projects(std::to_string(prompts) + " x 411", kSlow, 1024, parts(prompts, {411, 411}));
    }
    std::vector<Part> mixed = parts(48, {1, 450});
    for (int i = 0; i < 5; ++i) mixed.push_back({400, 400});
    projects("5 x 400 beside 48 decode rows", kSlow, 1024, mixed);
    projects("2 x 411", kS2, 2560, parts(2, {411, 411}));
    for (const int64_t batch : {1, 2, 4, 8, 16, 32, 64, 128, 256})
      for (const int64_t positions : {300, 1000}) {
        splits("", kSlow, batch, positions);
        splits("int8 ", kSlowInt8, batch, positions);
      }
  }

 private:
  void slow(const std::string& format, const Shapes& shapes) {
    for (const int64_t batch : {1, 8, 64, 256})
      for (const int64_t positions : {300, 1000})
        attends(format + "decode b" + std::to_string(batch) + " at " + std::to_string(positions), shapes,
                parts(batch, {1, positions}));
    for (const int64_t rows : {200, 1000, 2000})
      attends(format + "prefill " + std::to_string(rows), shapes, {{rows, rows}});
    std::vector<Part> mixed = parts(32, {1, 500});
    mixed.push_back({200, 200});
    attends(format + "prefill 200 beside 32 decode rows at 500", shapes, mixed);
  }

  static constexpr int kCalls = 28;  // of a recorded step

  static std::vector<Part> parts(int64_t count, Part part) {
    return std::vector<Part>(static_cast<size_t>(count), part);
  }

  void attends(const std::string& name, const Shapes& shapes, const std::vector<Part>& batch) {
    if (!wants(name)) return;
    prepare(shapes, batch, /*longest=*/0);
    time(name, [&](int layer) {
      ops::attend(ctx_, qkv_, {shapes.layout, rope_, shapes.window}, norm(shapes), plan_, cache(layer), out_);
    });
  }

  // The norm and the product before attention, too: in turn, and as norm_attend() does it.
  void projects(const std::string& name, const Shapes& shapes, int64_t dim, const std::vector<Part>& batch) {
    if (!wants("projected: " + name)) return;
    prepare(shapes, batch, /*longest=*/0);
    const Tensor stored = random(DType::bf16, {shapes.layout.qkv_width(), dim}, 0.03f);
    const PackedMatrix weight = pack_matrix(ctx_, stored, {}, DType::bf16);
    const Tensor rows = on_gpu(DType::f32, {qkv_.dim(0), dim}), scale = on_gpu(DType::f32, {dim});
    const AttentionPlan attention{shapes.layout, rope_, shapes.window};
    const std::string model = shapes.layout.heads == kS2.layout.heads ? "s2 " : "";
    time("projected: " + model + name + ", in turn", [&](int layer) {
      ops::norm_linear(ctx_, rows, {scale, 1e-6f}, weight, qkv_);
      ops::attend(ctx_, qkv_, attention, norm(shapes), plan_, cache(layer), out_);
    });
    time("projected: " + model + name, [&](int layer) {
      Residual stream(ctx_, rows, DType::bf16);
      norm_attend(ctx_, stream, {scale, 1e-6f}, weight, attention, norm(shapes), plan_, cache(layer), out_);
    });
  }

  // As in a model whose sequences may become 4,096 positions long.
  void splits(const std::string& format, const Shapes& shapes, int64_t batch, int64_t positions) {
    constexpr int64_t kKept = 4096 / 64;
    const std::string name =
        "splits: " + format + "decode b" + std::to_string(batch) + " at " + std::to_string(positions);
    if (!wants(name)) return;
    prepare(shapes, parts(batch, {1, positions}), /*longest=*/4096);
    for (const int64_t count : {1, 2, 4, 8})
      for (const bool clustered : {true, false})
        for (const bool deep : {false, true}) {
          if (count == 1 && clustered) continue;
          const std::string how = std::string(clustered ? " clustered" : "") + (deep ? " deep" : "");
          time(name + ", " + std::to_string(count) + how, [&](int layer) {
            const AttentionCall call{qkv_, shapes.layout, norm(shapes), rope_, &plan_, cache(layer), 0, out_};
            decode_attention(ctx_, call, {count, clustered, deep, clustered ? kKept : 0});
          });
        }
  }

  // Rows, pages and their plan. longest: positions for which page tables have room, if more than there are.
  void prepare(const Shapes& shapes, const std::vector<Part>& batch, int64_t longest) {
    offsets_ = {0};
    positions_.clear();
    table_.clear();
    read_positions_ = 0;
    for (const Part& part : batch) longest = std::max(longest, part.positions);
    const int64_t per_sequence = (longest + shapes.page_size - 1) / shapes.page_size;
    int32_t pages = 0;
    for (const Part& part : batch) {
      for (int64_t p = part.positions - part.rows; p < part.positions; ++p)
        positions_.push_back(static_cast<int32_t>(p));
      offsets_.push_back(static_cast<int32_t>(positions_.size()));
      for (int64_t page = 0; page < per_sequence; ++page)
        table_.push_back(page * shapes.page_size < part.positions ? pages++ : 0);
      const int64_t seen = shapes.window > 0 ? shapes.window + part.rows - 1 : part.positions;
      read_positions_ += std::min(seen, part.positions);
    }
    const int64_t rows = static_cast<int64_t>(positions_.size()), dim = shapes.layout.head_dim;
    const Shape shape = {pages, shapes.layout.kv_heads, shapes.page_size, dim};
    layer_bytes_ = 2 * read_positions_ * shapes.layout.kv_heads * dim * size_of(shapes.cache);
    constexpr int64_t kMostBytes = int64_t{4} << 30;
    const int64_t pool_bytes = 2 * shape.elements() * size_of(shapes.cache);
    caches_.resize(static_cast<size_t>(std::clamp<int64_t>(kMostBytes / pool_bytes, 1, kCalls)));
    const Shape scales = {pages, shapes.layout.kv_heads, shapes.page_size};
    for (KvTensors& layer : caches_) {
      layer = {zeros(shapes.cache, shape), zeros(shapes.cache, shape), {}, {}};
      if (shapes.cache == DType::i8)
        layer.k_scales = zeros(DType::f16, scales), layer.v_scales = zeros(DType::f16, scales);
    }
    qkv_ = zeros(DType::f32, {rows, shapes.layout.qkv_width()});
    out_ = zeros(DType::bf16, {rows, shapes.layout.heads * dim});
    weight_ = zeros(DType::f32, {dim});
    rope_ = resident(ctx_, make_rope_table(longest, dim, 10'000));

    plan_ = {{offsets_}, positions_, table_, per_sequence, shapes.page_size};
    sequences_.clear();
    plan_.tables.single_rows = true;
    for (int s = 0; s < plan_.rows.sequences(); ++s) {
      sequences_.insert(sequences_.end(), static_cast<size_t>(plan_.rows.count(s)), s);
      plan_.tables.single_rows &= plan_.rows.count(s) == 1;
    }
    tables_.clear();
    for (const std::vector<int32_t>* values : {&offsets_, &positions_, &sequences_, &table_})
      tables_.push_back(ints(*values));
    plan_.tables.offsets = tables_[0];
    plan_.tables.positions = tables_[1];
    plan_.tables.sequences = tables_[2];
    plan_.tables.page_table = tables_[3].view().reshape({plan_.rows.sequences(), per_sequence});
  }

  QkNorm norm(const Shapes& shapes) const {
    return shapes.normed ? QkNorm{weight_, weight_, 1e-6f} : QkNorm{};
  }
  KvLayer cache(int layer) const {
    const KvTensors& own = caches_[static_cast<size_t>(layer) % caches_.size()];
    return {own.k, own.v, own.k_scales, own.v_scales};
  }
  Tensor zeros(DType dtype, Shape shape) {
    Tensor tensor(dtype, shape, kDevice);
    fill_zero(ctx_, tensor);
    return tensor;
  }
  void time(const std::string& name, FunctionRef<void(int)> call) {
    const double median = median_us(kCalls, [&] {
      for (int i = 0; i < kCalls; ++i) call(i);
    });
    std::printf("%-52s %9.2f us %8.0f GB/s of keys and values\n", name.c_str(), median,
                static_cast<double>(layer_bytes_) / median * 1e-3);
  }

  struct KvTensors {
    Tensor k, v, k_scales, v_scales;
  };

  std::vector<int32_t> offsets_, positions_, sequences_, table_;
  int64_t read_positions_ = 0, layer_bytes_ = 0;
  std::vector<KvTensors> caches_;
  Tensor qkv_, out_, weight_, rope_;
  std::vector<Tensor> tables_;
  BatchPlan plan_;
};

}  // namespace
}  // namespace shoal::ops::cuda

int main(int argc, char** argv) {
  return shoal::ops::cuda::run_bench<shoal::ops::cuda::AttentionBench>(argc, argv);
}
