#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/attention.h"
#include "ops/cuda/attention/attention_int8.cuh"
#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kPrepareWarps = 8;

template <typename P>
struct PrepareArgs {
  Rows rows;
  Pages<P> pages;
  HeadTurn turn;
  Operand<P>* rounded;  // null: not wanted
  bool turned, in_place, append;
  int first_head, heads;  // which of q, k and v
};

// A warp per row and head.
template <typename P, int kPairs>
__global__ __launch_bounds__(32 *
                             kPrepareWarps) void prepare_kernel(const __grid_constant__ PrepareArgs<P> args) {
  const Rows& rows = args.rows;
  const int dim = rows.dim;
  const int row = static_cast<int>(blockIdx.x);
  const int index = static_cast<int>(blockIdx.y) * kPrepareWarps + static_cast<int>(threadIdx.x / 32);
  const int head = args.first_head + index;  // of q, then k, then v
  const bool is_q = head < rows.heads, is_k = !is_q && head < rows.heads + rows.kv_heads;
  const float* const norm_weight = is_q ? args.turn.q_weight : args.turn.k_weight;
  const bool normed = args.turned && (is_q || is_k) && norm_weight;
  HeadPairs<kPairs> values, weight;
  if (normed) weight.load(norm_weight, dim);
  wait_for_inputs();
  if (index >= args.heads) return;
  float* const from = const_cast<float*>(rows.q(row, head));
  values.load(from, dim);
  const int position = rows.positions[row];
  if (position < 0) return;

  if (args.turned && (is_q || is_k)) {
    HeadPairs<kPairs> turns;
    turns.load_turns(args.turn, position, dim);
    if (normed) values.norm(weight, dim, args.turn.eps);
    values.rotate(turns);
    if (args.in_place) values.store(from, dim);
  }
  if (is_q) {
    if (args.rounded) values.store(args.rounded + (static_cast<int64_t>(row) * rows.heads + head) * dim, dim);
  } else if (args.append) {
    const int kv_head = head - rows.heads - (is_k ? 0 : rows.kv_heads);
    const int page = args.pages.page_of(rows.sequences[row], position);
    P* const side = is_k ? args.pages.k : args.pages.v;
    const int slot = args.pages.slot(page, kv_head, position);
    if constexpr (PageFormat<P>::kScaled)
      (is_k ? args.pages.k_scales : args.pages.v_scales)[slot] = quantise(values);
    values.store(side + static_cast<int64_t>(slot) * dim, dim);
  }
}

// Page ids and where the layers' pages are travel in the kernel's parameters, so that the copy can be
// recorded.
struct PageCopies {
  static constexpr int kMost = 64, kMostSides = 96;
  int32_t from[kMost], to[kMost];
  void* sides[kMostSides];  // keys or values of a layer
};

// Block (i, side, part): a part of page from[i] of the keys or values of a layer.
template <typename Unit>
__global__ void copy_pages_kernel(int64_t page_units, const __grid_constant__ PageCopies copies) {
  wait_for_inputs();
  Unit* const side = static_cast<Unit*>(copies.sides[blockIdx.y]);
  const Unit* const from = side + copies.from[blockIdx.x] * page_units;
  Unit* const to = side + copies.to[blockIdx.x] * page_units;
  for (int64_t i = static_cast<int64_t>(blockIdx.z) * blockDim.x + threadIdx.x; i < page_units;
       i += static_cast<int64_t>(gridDim.z) * blockDim.x)
    to[i] = from[i];
}

// sides: [pages, ...], dense, of one shape; at most kMostSides.
void copy_some_pages(Context& ctx, std::span<const TensorView> sides, std::span<const int32_t> from,
                     std::span<const int32_t> to) {
  PageCopies copies{};
  std::ranges::copy(from, copies.from);
  std::ranges::copy(to, copies.to);
  std::ranges::transform(sides, copies.sides, [](const TensorView& side) { return side.data(); });
  const TensorView& shape = sides.front();
  const int64_t page_bytes = shape.elements() / shape.dim(0) * size_of(shape.dtype());
  const auto copy = [&](auto unit) {
    using Unit = decltype(unit);
    constexpr unsigned kThreads = 256, kMostParts = 64;
    const int64_t units = page_bytes / static_cast<int64_t>(sizeof(Unit));
    const auto parts = static_cast<unsigned>(std::min<int64_t>(blocks_for(units, kThreads), kMostParts));
    const dim3 blocks(static_cast<unsigned>(from.size()), static_cast<unsigned>(sides.size()), parts);
    launch(ctx, "copy_kv_pages", Grid{blocks, dim3(kThreads)}, copy_pages_kernel<Unit>, units, copies);
  };
  const auto is_wide = [](const TensorView& side) { return is_aligned(side.data(), 16); };
  if (page_bytes % 16 == 0 && std::ranges::all_of(sides, is_wide))
    copy(uint4{});
  else
    copy(uint8_t{});
}

void copy_pages(Context& ctx, std::span<const TensorView> sides, std::span<const int32_t> from,
                std::span<const int32_t> to) {
  for (size_t page = 0; page < from.size(); page += PageCopies::kMost)
    for (size_t side = 0; side < sides.size(); side += PageCopies::kMostSides) {
      const size_t pages = std::min<size_t>(from.size() - page, PageCopies::kMost);
      copy_some_pages(ctx, sides.subspan(side, std::min<size_t>(sides.size() - side, PageCopies::kMostSides)),
                      from.subspan(page, pages), to.subspan(page, pages));
    }
}

TensorView round_q(Context& ctx, const AttentionCall& call, HeadPreparation preparation) {
  const HeadLayout& layout = call.layout;
  preparation.rounded = ctx.workspace->alloc(query_dtype(call.cache.k.dtype()),
                                             {call.qkv.dim(0), layout.heads * layout.head_dim});
  prepare_heads(ctx, call, preparation);
  return preparation.rounded;
}

// Whether rows may see so many positions that one block should not have them all.
bool may_be_long(const AttentionCall& call) {
  constexpr int64_t kLong = 256;
  const int64_t positions = call.plan->pages_per_sequence * call.plan->page_size;
  return (call.window == 0 ? positions : std::min(positions, call.window)) > kLong;
}

}  // namespace

void check_alignment(const AttentionCall& call) {
  CHECK(call.qkv.empty() || (call.qkv.stride(0) % 2 == 0 && is_aligned(call.qkv.data(), 8)),
        "attention: rows of qkv are not aligned to pairs");
  CHECK(call.out.empty() || (call.out.stride(0) % 2 == 0 && is_aligned(call.out.data(), 8)),
        "attention: rows of out are not aligned to pairs");
  CHECK(call.plan->pages_per_sequence * call.plan->page_size * call.plan->page_size <= int64_t{1} << 31,
        "attention: ", call.plan->pages_per_sequence, " pages of ", call.plan->page_size,
        " positions are too many to be counted (reciprocal_of)");
  CHECK(is_aligned(call.cache.k.data(), 16) && is_aligned(call.cache.v.data(), 16),
        "attention: pages are not aligned to 16 bytes");
}

bool sets_single_rows_aside(const AttentionCall& call) {
  return call.plan->rows.sequences() > 1 && may_be_long(call);
}

float score_scale(int64_t dim) {
  return static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
}

bool has_tensor_form(const HeadLayout& layout, DType cache) {
  const int64_t dim = layout.head_dim;
  return (cache == DType::bf16 || cache == DType::f16 || cache == DType::i8) &&
         (dim == 32 || dim == 64 || dim == 128);
}

void prepare_heads(Context& ctx, const AttentionCall& call, const HeadPreparation& preparation) {
  const HeadLayout& layout = call.layout;
  const bool with_q = preparation.turn || !preparation.rounded.empty(),
             with_k = preparation.turn || preparation.append;
  const int64_t first = with_q ? 0 : layout.heads;
  const int64_t end =
      preparation.append ? layout.heads + 2 * layout.kv_heads : layout.heads + (with_k ? layout.kv_heads : 0);
  const int64_t heads = end - first, dim = layout.head_dim;
  const Grid grid{
      dim3(static_cast<unsigned>(call.qkv.dim(0)), static_cast<unsigned>(blocks_for(heads, kPrepareWarps))),
      dim3(32 * kPrepareWarps)};
  with_page_type(call.cache.k.empty() ? DType::f32 : call.cache.k.dtype(), [&](auto type) {
    using P = decltype(type);
    const PrepareArgs<P> args{rows_of(call),          pages_of<P>(call),
                              turn_of(call),          static_cast<Operand<P>*>(preparation.rounded.data()),
                              preparation.turn,       preparation.in_place,
                              preparation.append,     static_cast<int>(first),
                              static_cast<int>(heads)};
    const auto kernel = dim <= 64    ? prepare_kernel<P, 1>
                        : dim <= 128 ? prepare_kernel<P, 2>
                                     : prepare_kernel<P, 16>;
    launch(ctx, "prepare_heads", grid, kernel, args);
  });
}

void qk_norm_rope(Context& ctx, TensorView qkv, const HeadLayout& layout, const QkNorm& norm, TensorView rope,
                  const BatchPlan& plan) {
  const AttentionCall call{.qkv = qkv, .layout = layout, .norm = norm, .rope = rope, .plan = &plan};
  check_alignment(call);
  prepare_heads(ctx, call, {.turn = true, .in_place = true});
}

void append_kv(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
               const KvLayer& cache) {
  const AttentionCall call{.qkv = qkv, .layout = layout, .plan = &plan, .cache = cache};
  check_alignment(call);
  prepare_heads(ctx, call, {.append = true});
}

void copy_kv_pages(Context& ctx, std::span<const KvLayer> layers, std::span<const int32_t> from,
                   std::span<const int32_t> to) {
  std::vector<TensorView> pages, scales;
  for (const KvLayer& layer : layers) {
    pages.insert(pages.end(), {layer.k, layer.v});
    if (!layer.k_scales.empty()) scales.insert(scales.end(), {layer.k_scales, layer.v_scales});
  }
  copy_pages(ctx, pages, from, to);
  copy_pages(ctx, scales, from, to);
}

void paged_attention(Context& ctx, TensorView qkv, const HeadLayout& layout, const BatchPlan& plan,
                     const KvLayer& cache, int64_t window, TensorView out) {
  const AttentionCall call{
      .qkv = qkv, .layout = layout, .plan = &plan, .cache = cache, .window = window, .out = out};
  check_alignment(call);
  if (!has_tensor_form(layout, cache.k.dtype())) return lane_attention(ctx, call);
  const Workspace::Scope scope(*ctx.workspace);
  prefill_attention(ctx, call, round_q(ctx, call, {}), /*skip_single_rows=*/false);
}

void attend(Context& ctx, TensorView qkv, const AttentionPlan& attention, const QkNorm& norm,
            const BatchPlan& plan, const KvLayer& cache, TensorView out) {
  const HeadLayout& layout = attention.layout;
  const AttentionCall call{qkv, layout, norm, attention.rope, &plan, cache, attention.window, out};
  check_alignment(call);
  const DType dtype = cache.k.dtype();
  if (has_short_form(layout, dtype, plan)) return short_attention(ctx, call);
  if (!has_tensor_form(layout, dtype)) {
    prepare_heads(ctx, call, {.turn = true, .in_place = true, .append = true});
    return lane_attention(ctx, call);
  }
  const bool mixed = sets_single_rows_aside(call);
  if (plan.tables.single_rows || mixed) decode_attention(ctx, call, choose_decode_split(ctx, call));
  if (plan.tables.single_rows) return;
  const Workspace::Scope scope(*ctx.workspace);
  prefill_attention(ctx, call, round_q(ctx, call, {.turn = true, .append = true}), mixed);
}

}  // namespace shoal::ops::cuda
