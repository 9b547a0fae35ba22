// A product of wide.cuh whose blocks have 128 rows of one head each. A row of a head is in four lanes, as
// sixteen pairs of each, so that its norm adds up squares as a warp with a head does (HeadPairs): pair p + 32
// to p, then what 16, 8 and 4 lanes apart would add, which one lane has here, then the lanes.
#include "ops/cuda/attention/heads_product.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/sm90/wide.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kHeadsShape = 1;
constexpr int kHeadPairs = kStoredHeadDim / 2, kLanePairs = kHeadPairs / 4;
static_assert(kWideShapes[kHeadsShape].outputs == kStoredHeadDim && !kWideShapes[kHeadsShape].split);

struct HeadArguments {
  WideArguments wide;
  HeadStores stores;
};

using HeadValues =
    float[WideSizes<kHeadsShape>::kSums];  // of a thread: of pair n of row r, 4 n + 2 r and the next

// One of a thread's two rows.
struct HeadRow {
  int row, position, page;
  bool stored = false;  // as queries, keys and values
  bool aside = false;   // as it is

  __device__ HeadRow(const HeadArguments& a, int64_t at) : row(static_cast<int>(at)), position(-1), page(0) {
    if (at >= a.wide.tile.rows) return;
    const HeadStores& s = a.stores;
    position = s.positions[row];
    const int sequence = s.sequences[row];
    aside = s.offsets && s.offsets[sequence + 1] - s.offsets[sequence] == 1;
    stored = !aside && position >= 0;
    if (stored) page = s.pages.page_of(sequence, position);
  }
  // Of a head of queries, then of keys, then of values; null: it is not stored.
  __device__ uint16_t* place(const HeadStores& s, int head) const {
    if (!stored) return nullptr;
    if (head < s.heads) return s.q + (static_cast<int64_t>(row) * s.heads + head) * kStoredHeadDim;
    const int of_pages = head - s.heads, kv_heads = s.pages.kv_heads;
    uint16_t* const side = of_pages < kv_heads ? s.pages.k : s.pages.v;
    return side + static_cast<int64_t>(s.pages.slot(page, of_pages % kv_heads, position)) * kStoredHeadDim;
  }
};

__device__ inline int first_dim_of(int pair) { return (4 * pair + static_cast<int>(threadIdx.x % 4)) * 2; }

template <int kRow>
__device__ inline float squares_of(const HeadValues& values) {
  float sums[kLanePairs / 2];
#pragma unroll
  for (int n = 0; n < kLanePairs / 2; ++n) {
    sums[n] = 0;
#pragma unroll
    for (int i = n; i < kLanePairs; i += kLanePairs / 2) {
      const float x = values[4 * i + 2 * kRow], y = values[4 * i + 2 * kRow + 1];
      sums[n] = __fmaf_rn(y, y, __fmaf_rn(x, x, sums[n]));
    }
  }
#pragma unroll
  for (int distance = kLanePairs / 4; distance > 0; distance /= 2)
#pragma unroll
    for (int n = 0; n < distance; ++n) sums[n] = __fadd_rn(sums[n], sums[n + distance]);
  const float of_two = __fadd_rn(sums[0], __shfl_xor_sync(~0u, sums[0], 2));
  return __fadd_rn(of_two, __shfl_xor_sync(~0u, of_two, 1));
}

// The cosines and sines of a row's position, that a thread needs.
struct RowTurns {
  float2 of_pair[kLanePairs];
};

// They are asked for here and not where they are needed (volatile): the tensor cores are busy meanwhile.
[[maybe_unused]] __device__ inline void load_turns(const HeadTurn& turn, int position, RowTurns& to) {
  const int known = max(0, min(position, turn.rope_positions - 1));
  const float* const turns = turn.rope + static_cast<int64_t>(known) * kStoredHeadDim;
#pragma unroll
  for (int n = 0; n < kLanePairs; ++n)
    asm volatile("ld.global.nc.v2.f32 {%0,%1}, [%2];"
                 : "=f"(to.of_pair[n].x), "=f"(to.of_pair[n].y)
                 : "l"(turns + first_dim_of(n)));
}

// weight: of the norm, or null.
template <int kRow>
__device__ inline void turn_row(const HeadTurn& turn, const float* weight, const RowTurns& turns,
                                HeadValues& values) {
  const float factor = weight ? head_factor(squares_of<kRow>(values), kStoredHeadDim, turn.eps) : 1.0f;
#pragma unroll
  for (int n = 0; n < kLanePairs; ++n) {
    float2 pair{values[4 * n + 2 * kRow], values[4 * n + 2 * kRow + 1]};
    if (weight) pair = normed_pair(pair, factor, load_pair(weight + first_dim_of(n)));
    pair = turned(pair, turns.of_pair[n]);
    values[4 * n + 2 * kRow] = pair.x, values[4 * n + 2 * kRow + 1] = pair.y;
  }
}

// A head's row as it is, to the product's y.
__device__ inline void store_aside(const HeadArguments& a, const HeadRow (&rows)[2], int head,
                                   const HeadValues& values) {
  const ProductEpilogue& e = a.wide.tile.epilogue;
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < kLanePairs; ++n) {
      float* const to = static_cast<float*>(e.y) + rows[r].row * e.y_stride + head * kStoredHeadDim;
      if (rows[r].aside)
        *reinterpret_cast<float2*>(to + first_dim_of(n)) =
            make_float2(values[4 * n + 2 * r], values[4 * n + 2 * r + 1]);
    }
}

__device__ inline void store_rounded(DType dtype, uint16_t* to, const HeadValues& values, int r) {
#pragma unroll
  for (int chunk = 0; chunk < kStoredHeadDim / 16; ++chunk) {
    const float* const low = &values[8 * chunk + 2 * r];
    const uint2 quad =
        quad_of_pairs(rounded_pair(dtype, low[0], low[1]), rounded_pair(dtype, low[4], low[5]));
    if (to) store_past_first_cache(to + chunk * 16 + quad_column(), quad);
  }
}

[[maybe_unused]] __device__ inline void store_head(const HeadArguments& a, const HeadRow (&rows)[2],
                                                   const RowTurns (&turns)[2], int head, HeadValues& values) {
  const HeadStores& s = a.stores;
  finish_plain(a.wide.tile, head * kStoredHeadDim, values);
  if (rows[0].aside || rows[1].aside) store_aside(a, rows, head, values);
  if (s.turns(head)) {
    const float* const weight = head < s.heads ? s.turn.q_weight : s.turn.k_weight;
    turn_row<0>(s.turn, weight, turns[0], values);
    turn_row<1>(s.turn, weight, turns[1], values);
  }
  store_rounded(s.dtype, rows[0].place(s, head), values, 0);
  store_rounded(s.dtype, rows[1].place(s, head), values, 1);
}

template <typename T>
__global__ void __launch_bounds__(kWideShapes[kHeadsShape].threads(), kWideShapes[kHeadsShape].blocks)
    heads_kernel(const __grid_constant__ HeadArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared_bytes[];
  const WideShared<kHeadsShape> shared{arguments.wide.plan, shared_address(shared_bytes)};
  run_warps<kHeadsShape>(arguments.wide, shared, [&](int group) {
    WideConsumer<T, kHeadsShape> consumer(arguments.wide, shared, group);
    for (WideWork<kHeadsShape> work(arguments.wide); work.has_result(); work.next()) {
      const int64_t row = first_row_of_warp(work, group) + static_cast<int>(threadIdx.x % 32 / 4);
      const HeadRow rows[] = {{arguments, row}, {arguments, row + 8}};
      const int head = work.output_block();
      HeadValues values = {};
      RowTurns turns[2];
      total_segments(work, consumer, values, [&] {
        if (!arguments.stores.turns(head)) return;
        load_turns(arguments.stores.turn, rows[0].position, turns[0]);
        load_turns(arguments.stores.turn, rows[1].position, turns[1]);
      });
      store_head(arguments, rows, turns, head, values);
    }
  });
#endif
}

}  // namespace

bool suits_heads(const Product& product, const Machine& machine) {
  // Of 411 rows it takes as long as what it replaces, of 822 a tenth less (H200).
  constexpr int64_t kFewestRows = 512;
  return machine.wgmma && product.rows >= kFewestRows && product.format.operand != DType::f32 &&
         !is_narrow(product) && product.shape.taps == 1 && !product.shape.paired &&
         product.shape.outputs % kStoredHeadDim == 0 &&
         wide_plan({kHeadsShape}, product.shape, machine).stages > 0;
}

void heads_product(Context& ctx, const Product& product, const HeadStores& stores) {
  const WideChoice choice{kHeadsShape};
  const Machine machine = machine_of(ctx);
  const HeadArguments arguments{wide_arguments(product, choice, nullptr, machine), stores};
  const ProductEpilogue& epilogue = product.epilogue;
  CHECK(
      arguments.wide.tile.plain && !epilogue.scale && !epilogue.accumulate && epilogue.y_dtype == DType::f32,
      "a product of heads with another epilogue than a bias");
  const WideShape& shape = kWideShapes[kHeadsShape];
  const Grid grid{.blocks = dim3(static_cast<unsigned>(wide_blocks(arguments.wide, choice, machine))),
                  .threads = dim3(static_cast<unsigned>(shape.threads())),
                  .shared_bytes = static_cast<size_t>(arguments.wide.plan.bytes)};
  with_operand_type(product.format.operand, [&](auto type) {
    launch(ctx, "product of heads", grid, heads_kernel<decltype(type)>, arguments);
  });
}

}  // namespace shoal::ops::cuda
