#include "runtime/families/language/step_runner.h"

#include <algorithm>

namespace shoal::runtime {

StepRunner::StepRunner(const dual_ar::Config& config, ModelCalls& calls, dual_ar::KvCache& cache,
                       ops::Context& ctx, int64_t rows)
    : config_(config),
      calls_(calls),
      cache_(cache),
      ctx_(ctx),
      memory_(ctx, config, rows, (config.max_positions + cache.page_size() - 1) / cache.page_size()) {}

void StepRunner::run(std::span<SequenceRows> rows, FunctionRef<void()> before_retry) {
  if (rows.empty()) return;
  try {
    run_together(rows);
    return;
  } catch (...) {
    before_retry();
  }
  run_in_halves(rows);
}

void StepRunner::run_in_halves(std::span<SequenceRows> rows) {
  try {
    run_together(rows);
  } catch (...) {
    if (rows.size() == 1) {
      rows[0].error = std::current_exception();
      return;
    }
    run_in_halves(rows.first(rows.size() / 2));
    run_in_halves(rows.subspan(rows.size() / 2));
  }
}

void StepRunner::append(const SequenceRows& rows, int64_t pages_per_sequence) {
  const auto width = static_cast<size_t>(config_.columns());
  const auto begin = static_cast<size_t>(rows.first) * width;
  const auto end = begin + static_cast<size_t>(rows.count) * width;
  CHECK(end <= rows.prompt.size() + rows.frames.size(), "columns up to ", rows.first + rows.count);
  const size_t prompt = rows.prompt.size(), of_prompt = std::clamp(prompt, begin, end);
  const auto add = [&](std::span<const int32_t> from, size_t first, size_t last) {
    columns_.insert(columns_.end(), from.data() + first, from.data() + last);
  };
  if (begin < of_prompt) add(rows.prompt, begin, of_prompt);
  if (of_prompt < end) add(rows.frames, of_prompt - prompt, end - prompt);
  for (int64_t i = 0; i < rows.count; ++i) positions_.push_back(static_cast<int32_t>(rows.first + i));
  offsets_.push_back(static_cast<int32_t>(positions_.size()));
  pages_.insert(pages_.end(), rows.pages.begin(), rows.pages.end());
  pages_.insert(pages_.end(), static_cast<size_t>(pages_per_sequence) - rows.pages.size(), 0);
}

void StepRunner::run_together(std::span<SequenceRows> rows) {
  columns_.clear(), positions_.clear(), pages_.clear(), requests_.clear();
  offsets_.assign(1, 0);
  size_t pages = 0;
  for (const SequenceRows& sequence : rows) pages = std::max(pages, sequence.pages.size());
  for (const SequenceRows& sequence : rows) {
    append(sequence, static_cast<int64_t>(pages));
    if (sequence.wants_frame) requests_.push_back(sequence.request);
  }
  const auto count = static_cast<int64_t>(rows.size());
  CHECK(std::is_partitioned(rows.begin(), rows.end(), [](const auto& r) { return r.wants_frame; }),
        "rows that want a frame come first");
  const ops::BatchPlan plan{.rows = {offsets_},
                            .positions = positions_,
                            .page_table = pages_,
                            .pages_per_sequence = static_cast<int64_t>(pages),
                            .page_size = cache_.page_size()};
  const auto width = static_cast<size_t>(config_.columns());
  frames_.resize(requests_.size() * width);
  if (plan.rows.rows() == count && std::ssize(requests_) == count) {
    calls_.decode_frames(ctx_, memory_, plan, columns_, requests_, cache_, frames_);
  } else {
    calls_.forward(ctx_, plan, columns_, cache_, memory_.hidden().slice(0, count));
    if (requests_.empty()) return;
    calls_.generate_frames(ctx_, memory_, requests_, frames_);
  }
  for (size_t i = 0; i < requests_.size(); ++i)
    std::copy_n(frames_.begin() + static_cast<std::ptrdiff_t>(i * width), width, rows[i].frame.begin());
}

}  // namespace shoal::runtime
