#include "tests/parity/lm_driver.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "ops/transfer.h"

namespace shoal::parity {

struct LmDriver::Rows {
  std::vector<int32_t> offsets = {0}, positions, table, columns;
  int64_t pages_per_sequence = 0, page_size = 0;
  ops::BatchPlan plan() const {
    return {.rows = {offsets},
            .positions = positions,
            .page_table = table,
            .pages_per_sequence = pages_per_sequence,
            .page_size = page_size};
  }
};

LmDriver::LmDriver(const dual_ar::DualAr& model, ops::Context& ctx, const LmPaging& paging)
    : model_(model),
      ctx_(ctx),
      page_size_(paging.page_size),
      pages_per_sequence_((paging.columns_per_sequence + paging.page_size - 1) / paging.page_size),
      page_table_(static_cast<size_t>(paging.sequences * pages_per_sequence_)),
      lengths_(static_cast<size_t>(paging.sequences)),
      cache_(model.config(), paging.sequences * pages_per_sequence_, paging.page_size, model.formats().kv,
             ctx.device),
      memory_(ctx, model.config(), paging.sequences, pages_per_sequence_) {
  std::iota(page_table_.begin(), page_table_.end(), 0);
  if (paging.placement_seed != 0)
    std::shuffle(page_table_.begin(), page_table_.end(), std::mt19937_64(paging.placement_seed));
}

LmDriver::Rows LmDriver::next_rows(std::span<const Chunk> chunks) {
  const auto width = static_cast<size_t>(model_.config().columns());
  const auto pages = static_cast<size_t>(pages_per_sequence_);
  Rows rows;
  rows.pages_per_sequence = pages_per_sequence_;
  rows.page_size = page_size_;
  for (const Chunk& chunk : chunks) {
    const auto sequence = static_cast<size_t>(chunk.sequence);
    const auto count = static_cast<int64_t>(chunk.columns.size() / width);
    for (int64_t i = 0; i < count; ++i)
      rows.positions.push_back(static_cast<int32_t>(lengths_[sequence] + i));
    lengths_[sequence] += count;
    CHECK(lengths_[sequence] <= pages_per_sequence_ * page_size_, "sequence ", sequence, " is full");
    rows.offsets.push_back(rows.offsets.back() + static_cast<int32_t>(count));
    rows.columns.insert(rows.columns.end(), chunk.columns.begin(), chunk.columns.end());
    rows.table.insert(rows.table.end(), page_table_.begin() + static_cast<std::ptrdiff_t>(sequence * pages),
                      page_table_.begin() + static_cast<std::ptrdiff_t>((sequence + 1) * pages));
  }
  return rows;
}

Tensor LmDriver::forward(std::span<const Chunk> chunks, dual_ar::Taps* taps) {
  const Rows rows = next_rows(chunks);
  const Tensor hidden =
      Tensor::zeros(DType::f32, {static_cast<int64_t>(chunks.size()), model_.config().slow.dim}, ctx_.device);
  model_.forward_slow(ctx_, rows.plan(), rows.columns, cache_, hidden, taps);
  return ops::to_host(ctx_, hidden);
}

std::vector<int32_t> LmDriver::draw(TensorView hidden, std::span<const dual_ar::FrameRequest> requests,
                                    dual_ar::Taps* taps) {
  std::vector<int32_t> frames(requests.size() * static_cast<size_t>(model_.config().columns()));
  ops::synchronize(ctx_);
  copy(hidden, memory_.hidden().slice(0, hidden.dim(0)));
  model_.generate_frames(ctx_, memory_, requests, frames, taps);
  return frames;
}

std::vector<float> LmDriver::logits(TensorView hidden) const {
  Tensor in(DType::f32, hidden.shape(), ctx_.device);
  copy(hidden, in);
  const Tensor out(DType::f32, {hidden.dim(0), model_.head_outputs()}, ctx_.device);
  model_.slow_logits(ctx_, in, out);
  const Tensor values = ops::to_host(ctx_, out);
  return {values.as<float>(), values.as<float>() + values.elements()};
}

std::vector<int32_t> LmDriver::decode(std::span<const Chunk> chunks,
                                      std::span<const dual_ar::FrameRequest> requests) {
  const Rows rows = next_rows(chunks);
  std::vector<int32_t> frames(rows.columns.size());
  model_.decode_frames(ctx_, memory_, rows.plan(), rows.columns, requests, cache_, frames);
  return frames;
}

Tensor LmDriver::forward(int64_t sequence, std::span<const int32_t> columns, dual_ar::Taps* taps) {
  const Chunk chunk{sequence, columns};
  return forward({&chunk, 1}, taps);
}

std::vector<int32_t> LmDriver::generate(int64_t sequence, std::span<const int32_t> prompt,
                                        const dual_ar::Sampling& sampling, int64_t max_new_tokens,
                                        dual_ar::Taps* taps) {
  const dual_ar::Config& config = model_.config();
  dual_ar::Utterance utterance(config, sampling, static_cast<int64_t>(prompt.size()) / config.columns(),
                               max_new_tokens);
  reset(sequence);
  Tensor hidden = forward(sequence, prompt);
  for (;;) {
    const dual_ar::FrameRequest request = utterance.next_request();
    if (utterance.accept(draw(hidden, {&request, 1}, taps))) break;
    hidden = forward(sequence, utterance.last_frame());
  }
  return {utterance.frames().begin(), utterance.frames().end()};
}

}  // namespace shoal::parity
