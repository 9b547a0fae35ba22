// Attention on CUDA, by kernel: attention.cu chooses. The arithmetic, which all kernels of a family share:
//
// Tensor cores (16-bit keys of 32, 64 or 128 dims; attention_tiles.cuh): q and the weights of a row are
// rounded to the cache's dtype, everything else is f32. Keys are taken in chunks of 64 absolute positions. In
// a chunk: scores by mma over rising dims, times `scale`; their maximum m; p = 2^(score - m), exactly 0 for
// what is masked; the sum l and the values o of the rounded p by mma over rising positions. Chunks are merged
// by rising position (merge_maximum, merged); a chunk of which a row sees nothing leaves it as it was. Lanes
// (everything else; attention_lanes.cuh): the same in f32, in chunks of 32 positions, a lane each.
//
// So a row's bits depend on its position, the window and its own keys, not on the kernel (ARCHITECTURE.md).
#pragma once

#include <cstdint>

#include "ops/attention.h"

namespace shoal::ops::cuda {

struct AttentionCall {
  TensorView qkv;
  HeadLayout layout;
  QkNorm norm;
  TensorView rope;
  const BatchPlan* plan = nullptr;
  KvLayer cache;
  int64_t window = 0;
  TensorView out;
};

// Kernels read and write pairs of floats of qkv and out, and sixteen bytes of pages.
void check_alignment(const AttentionCall& call);

// Whether sequences of one row beside others have decode_attention: among the blocks of prompts they would
// be blocks of one row that go through a long context all by themselves.
bool sets_single_rows_aside(const AttentionCall& call);

// What becomes of the heads of qkv before keys are looked at.
struct HeadPreparation {
  bool turn = false;      // norm and rotate q and k
  bool in_place = false;  // and put them back into qkv
  bool append = false;    // k and v into their pages
  TensorView rounded;     // not empty: q in the cache's dtype, [rows, heads * head_dim]
};
void prepare_heads(Context& ctx, const AttentionCall& call, const HeadPreparation& preparation);

// Whether the tensor cores' arithmetic applies.
bool has_tensor_form(const HeadLayout& layout, DType cache);

// How the chunks of a decode row are spread.
struct DecodeSplit {
  int64_t splits = 1;      // blocks per row and key/value head
  bool clustered = false;  // they merge through each other's shared memory; else by a second kernel
  bool deep = false;       // a block also fetches the values of the next chunk early, not only the keys
  int64_t kept = 0;  // clustered: the largest number of chunks per block whose results stay in shared memory
                     // until the merge; those of others go through device memory
};
DecodeSplit choose_decode_split(Context& ctx, const AttentionCall& call);
// attend() for the sequences that have one row, on tensor cores. Other sequences are left unchanged.
void decode_attention(Context& ctx, const AttentionCall& call, const DecodeSplit& split);
// paged_attention() of prepared q, on tensor cores. skip_single_rows: leaves out the sequences of
// decode_attention.
void prefill_attention(Context& ctx, const AttentionCall& call, TensorView rounded_q, bool skip_single_rows);

// paged_attention() of prepared q in qkv, lanes.
void lane_attention(Context& ctx, const AttentionCall& call);
// attend() in one kernel for f32 caches of at most 32 positions per sequence, lanes.
bool has_short_form(const HeadLayout& layout, DType cache, const BatchPlan& plan);
void short_attention(Context& ctx, const AttentionCall& call);

}  // namespace shoal::ops::cuda
