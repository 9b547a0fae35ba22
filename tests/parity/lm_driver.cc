#include "tests/parity/lm_driver.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace shoal::parity {

LmDriver::LmDriver(const dual_ar::DualAr& model, ops::Context& ctx, const LmPaging& paging)
    : model_(model),
      ctx_(ctx),
      page_size_(paging.page_size),
      pages_per_sequence_((paging.columns_per_sequence + paging.page_size - 1) / paging.page_size),
      page_table_(static_cast<size_t>(paging.sequences * pages_per_sequence_)),
      lengths_(static_cast<size_t>(paging.sequences)),
      cache_(model.config(), paging.sequences * pages_per_sequence_, paging.page_size, model.dtype()) {
  std::iota(page_table_.begin(), page_table_.end(), 0);
  if (paging.placement_seed != 0)
    std::shuffle(page_table_.begin(), page_table_.end(), std::mt19937_64(paging.placement_seed));
}

Tensor LmDriver::forward(std::span<const Chunk> chunks, dual_ar::Taps* taps) {
  const auto width = static_cast<size_t>(model_.config().columns());
  const auto pages = static_cast<size_t>(pages_per_sequence_);
  std::vector<int32_t> offsets = {0}, positions, table, columns;
  for (const Chunk& chunk : chunks) {
    const auto sequence = static_cast<size_t>(chunk.sequence);
    const auto count = static_cast<int64_t>(chunk.columns.size() / width);
    for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(lengths_[sequence] + i));
    lengths_[sequence] += count;
    CHECK(lengths_[sequence] <= pages_per_sequence_ * page_size_, "sequence ", sequence, " is full");
    offsets.push_back(offsets.back() + static_cast<int32_t>(count));
    columns.insert(columns.end(), chunk.columns.begin(), chunk.columns.end());
    table.insert(table.end(), page_table_.begin() + static_cast<std::ptrdiff_t>(sequence * pages),
                 page_table_.begin() + static_cast<std::ptrdiff_t>((sequence + 1) * pages));
  }
  const ops::BatchPlan plan{.rows = {offsets},
                            .positions = positions,
                            .page_table = table,
                            .pages_per_sequence = pages_per_sequence_,
                            .page_size = page_size_};
  Tensor hidden = Tensor::zeros(DType::f32, {static_cast<int64_t>(chunks.size()), model_.config().slow.dim});
  model_.forward_slow(ctx_, plan, columns, cache_, hidden, taps);
  return hidden;
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
  std::vector<int32_t> frame(static_cast<size_t>(config.columns()));
  for (;;) {
    const dual_ar::FrameRequest request = utterance.next_request();
    model_.generate_frames(ctx_, hidden, {&request, 1}, frame, taps);
    if (utterance.accept(frame)) break;
    hidden = forward(sequence, utterance.last_frame());
  }
  return {utterance.frames().begin(), utterance.frames().end()};
}

}  // namespace shoal::parity
