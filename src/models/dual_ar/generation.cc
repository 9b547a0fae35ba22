#include "models/dual_ar/generation.h"

#include <algorithm>

#include "base/error.h"

namespace shoal::dual_ar {
namespace {

constexpr int64_t kReservedForSpeech = 2048;  // fish-speech's generate_long

void check_range(const char* name, float value, float low, float high) {
  if (!(value >= low && value <= high))
    fail(ErrorCode::invalid_argument, name, " must be in ", low, "..", high, ", got ", value);
}

int64_t bounded_frames(const Config& config, int64_t prompt_columns, int64_t max_new_tokens) {
  if (prompt_columns < 1) fail(ErrorCode::invalid_argument, "prompt must have at least one column");
  if (max_new_tokens < 0)
    fail(ErrorCode::invalid_argument, "max_new_tokens must be at least 0, got ", max_new_tokens);
  if (prompt_columns >= config.max_positions)
    fail(ErrorCode::too_large, "prompt must have fewer than ", config.max_positions, " columns, got ",
         prompt_columns);
  const int64_t room = config.max_positions - prompt_columns;
  return max_new_tokens == 0 ? room : std::min(max_new_tokens, room);
}

}  // namespace

Sampling Sampling::defaults(Family family) {
  if (family == Family::s1) return {};
  return {.temperature = 1.0f, .top_p = 0.9f, .repetition_penalty = 1.0f, .top_k = 30};
}

void check_sampling(const Sampling& sampling) {
  check_range("temperature", sampling.temperature, 0, 2);
  check_range("top_p", sampling.top_p, 0, 1);
  check_range("repetition_penalty", sampling.repetition_penalty, 0.01f, 2);
  if (sampling.top_k < 0) fail(ErrorCode::invalid_argument, "top_k must be at least 0, got ", sampling.top_k);
}

int64_t prompt_limit(const Config& config) {
  return config.max_positions - std::min(kReservedForSpeech, config.max_positions / 2);
}

void check_columns(const Config& config, std::span<const int32_t> columns) {
  const auto width = static_cast<size_t>(config.columns());
  if (columns.size() % width != 0)
    fail(ErrorCode::invalid_argument, "prompt must be columns of ", width, " ids, got ", columns.size(),
         " ids");
  for (size_t column = 0; column < columns.size() / width; ++column)
    for (size_t row = 0; row < width; ++row) {
      const int64_t end = row == 0 ? config.vocab_size : config.codebook_size;
      const int32_t id = columns[column * width + row];
      if (id < 0 || id >= end)
        fail(ErrorCode::invalid_argument, "prompt column ", column, ", row ", row, " must be in 0..", end - 1,
             ", got ", id);
    }
}

Utterance::Utterance(const Config& config, const Sampling& sampling, int64_t prompt_columns,
                     int64_t max_new_tokens)
    : sampling_(sampling),
      family_(config.family),
      columns_(config.columns()),
      im_end_(config.im_end),
      prompt_columns_(prompt_columns),
      max_frames_(bounded_frames(config, prompt_columns, max_new_tokens)) {
  check_sampling(sampling);
  frames_.reserve(static_cast<size_t>(max_frames_ * columns_));
  if (family_ == Family::s1) {
    window_.assign(static_cast<size_t>(columns_ * kPenaltyWindow), 0);
    oldest_.assign(static_cast<size_t>(columns_), 0);
  } else {
    recent_.assign(static_cast<size_t>(kRecentTokens), 0);
  }
}

FrameRequest Utterance::next_request() const {
  CHECK(!finished());
  FrameRequest request{.temperature = sampling_.temperature,
                       .top_p = sampling_.top_p,
                       .top_k = sampling_.top_k,
                       .seed = sampling_.seed,
                       .frame = static_cast<uint32_t>(frame_count()),
                       .semantic_only = family_ == Family::s2 || sampling_.quirks.semantic_only};
  if (frame_count() == 0) return request;  // the frame of the prefill: no window yet
  if (family_ == Family::s2) {
    request.recent_tokens = recent_;
    return request;
  }
  const auto window = std::span<const int32_t>(window_);
  request.repetition_penalty = sampling_.repetition_penalty;
  request.penalised_codes = window.subspan(kPenaltyWindow);
  const int64_t written = std::min(frame_count() - 1, kPenaltyWindow);
  request.penalised_tokens = sampling_.quirks.penalise_window_semantics
                                 ? window.first(static_cast<size_t>(written))
                                 : std::span<const int32_t>(oldest_);
  return request;
}

bool Utterance::accept(std::span<const int32_t> frame) {
  CHECK(!finished());
  CHECK(static_cast<int64_t>(frame.size()) == columns_, "frame has ", frame.size(), " values");
  const bool first = frames_.empty();
  frames_.insert(frames_.end(), frame.begin(), frame.end());
  if (!first) remember(frame);
  if (frame[0] == im_end_ && (!first || sampling_.quirks.check_first_frame_end)) {
    finish_reason_ = FinishReason::end_token;
  } else if (frame_count() == max_frames_) {
    finish_reason_ = FinishReason::length;
  }
  return finished();
}

// Enters loop frame i = frame_count() - 2 and prepares the window of the next iteration, i + 1. Its column 0
// is loop frame 0 while i + 1 < 16, then i + 1 - 16: both are in slot 0 or (i + 1) mod 16 of the ring.
void Utterance::remember(std::span<const int32_t> frame) {
  const int64_t loop = frame_count() - 2;
  if (family_ == Family::s2) {
    recent_[static_cast<size_t>(loop % kRecentTokens)] = frame[0];
    return;
  }
  const int64_t next = loop + 1;
  const int64_t column0 = next < kPenaltyWindow ? 0 : next % kPenaltyWindow;
  for (int64_t row = 0; row < columns_; ++row) {
    int32_t* ring = &window_[static_cast<size_t>(row * kPenaltyWindow)];
    ring[loop % kPenaltyWindow] = frame[static_cast<size_t>(row)];
    oldest_[static_cast<size_t>(row)] = ring[column0];
  }
}

std::span<const int32_t> Utterance::last_frame() const {
  CHECK(!frames_.empty());
  return std::span<const int32_t>(frames_).last(static_cast<size_t>(columns_));
}

int64_t Utterance::speech_frames() const {
  if (!finished()) return frame_count();
  const bool whole = finish_reason_ == FinishReason::length && sampling_.quirks.keep_last_frame_without_end;
  return whole ? frame_count() : frame_count() - 1;
}

}  // namespace shoal::dual_ar
