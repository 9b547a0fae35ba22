#include "runtime/families/language/model_sizes.h"

#include <algorithm>

#include "ops/device_state.h"
#include "ops/draw.h"
#include "ops/residual.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kFloat = sizeof(float);

int64_t block_bytes(const dual_ar::BlockConfig& c, int64_t element) {
  const int64_t matrices = c.dim * (c.qkv_width() + c.attention_width()) + 3 * c.dim * c.hidden;
  const int64_t vectors = 2 * c.dim + (c.qk_norm ? 2 * c.head_dim : 0) + (c.qkv_bias ? c.qkv_width() : 0) +
                          (c.out_bias ? c.dim : 0);
  return matrices * element + vectors * kFloat;
}

// Intermediate tensors of a block, with the copy of a product's input.
int64_t block_workspace(const ModelSizes& m, const dual_ar::BlockConfig& c, int64_t rows) {
  const int64_t input = m.input_bytes();
  const int64_t widest = std::max({c.dim, c.attention_width(), c.hidden});
  return rows *
         (c.qkv_width() * kFloat + (c.attention_width() + c.hidden) * input + widest * size_of(m.dtype));
}

// Of blocks of at most so many rows, with the sums that wait between them, which only those of few rows do.
int64_t stream_workspace(const ModelSizes& m, const dual_ar::BlockConfig& c, int64_t rows) {
  const int64_t few = std::min(rows, ops::kMostPendingRows);
  const int64_t waiting = ops::computes_by_itself(m.device) ? ops::pending_bytes(few, c.dim, m.dtype) : 0;
  return std::max(block_workspace(m, c, rows), block_workspace(m, c, few) + waiting);
}

}  // namespace

int64_t ModelSizes::input_bytes() const { return ops::computes_by_itself(device) ? size_of(dtype) : kFloat; }

int64_t ModelSizes::head_rows() const {
  const dual_ar::Config& c = language_model;
  return semantic_head ? int64_t{c.semantic_end} - c.semantic_begin + 2 : c.vocab_size;
}

dual_ar::DualAr::Bytes ModelSizes::language_model_bytes() const {
  const dual_ar::Config& c = language_model;
  const int64_t element = size_of(dtype), slow = c.slow.dim, fast = c.fast.dim;
  dual_ar::DualAr::Bytes bytes;
  bytes.embeddings =
      ((c.vocab_size + c.num_codebooks * c.codebook_size) * slow + c.codebook_size * fast) * element;
  bytes.slow_layers = c.slow_layers * block_bytes(c.slow, element);
  bytes.head = slow * kFloat + head_rows() * slow * element;
  bytes.fast_layers = c.fast_layers * block_bytes(c.fast, element);
  bytes.fast_head = fast * kFloat + c.residual_codes() * fast * element;
  if (fast != slow) bytes.fast_head += fast * slow * element + fast * kFloat;
  bytes.rope = (c.max_positions * c.slow.head_dim + c.num_codebooks * c.fast.head_dim) * kFloat;
  return bytes;
}

int64_t ModelSizes::step_bytes(int64_t rows, int64_t pages_per_sequence) const {
  const dual_ar::Config& c = language_model;
  const int64_t ids = 2 * c.columns() + 1 + pages_per_sequence + c.num_codebooks * dual_ar::kPenaltyWindow;
  return rows * (c.slow.dim * kFloat + ids * 4 + static_cast<int64_t>(sizeof(ops::DrawRow)));
}

int64_t ModelSizes::decode_workspace_bytes(int64_t rows) const {
  const dual_ar::Config& c = language_model;
  const dual_ar::BlockConfig& fast = c.fast;
  const int64_t cache = 2 * c.fast_layers * fast.kv_heads * c.num_codebooks * fast.head_dim;
  const int64_t draw =
      head_rows() + (c.norm_fast_input ? c.slow.dim : 0) + cache + 2 * fast.dim + c.residual_codes();
  return rows * c.slow.dim * kFloat +
         std::max(stream_workspace(*this, c.slow, rows),
                  rows * draw * kFloat + stream_workspace(*this, fast, 2 * rows));
}

int64_t ModelSizes::parked_bytes(int64_t rows) const {
  if (!ops::computes_by_itself(device) || dtype == DType::f32) return 0;
  constexpr int64_t kMultiprocessors = 160, kChunk = 64;  // of the largest GPUs; positions
  const dual_ar::BlockConfig& slow = language_model.slow;
  const int64_t heads = std::min(rows * slow.kv_heads, kMultiprocessors) * (slow.heads / slow.kv_heads);
  const int64_t chunks = (language_model.max_positions + kChunk - 1) / kChunk;
  return heads * chunks * (slow.head_dim + 2) * kFloat;
}

int64_t ModelSizes::prefill_workspace_bytes(int64_t columns) const {
  const dual_ar::Config& c = language_model;
  return columns * (c.slow.dim * kFloat + (c.columns() + 2) * 4) + stream_workspace(*this, c.slow, columns);
}

int64_t ModelSizes::launches_of_step() const {
  constexpr int64_t kOfBlock = 7, kOfPass = 4;
  constexpr int64_t kAround = 8;  // ids to the device, embedding, head, token, the fast input, frames back
  const dual_ar::Config& c = language_model;
  return c.slow_layers * kOfBlock + (c.num_codebooks - 1) * (c.fast_layers * kOfBlock + kOfPass) + kAround;
}

ModelSizes sizes_of(const SpeechModel& model, Device device) {
  return {
      .language_model = model.language_model().config(),
      .codec = model.codec().config(),
      .dtype = model.precision(),
      .device = device,
      .semantic_head = model.language_model().head_outputs() != model.language_model().config().vocab_size,
      .with_encoder = model.codec().can_encode()};
}

}  // namespace shoal::runtime
