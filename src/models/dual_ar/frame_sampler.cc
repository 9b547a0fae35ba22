#include "models/dual_ar/frame_sampler.h"

#include <algorithm>

#include "models/dual_ar/step_array.h"
#include "ops/sample.h"

namespace shoal::dual_ar {
namespace {

// S2's second draw (spec dual_ar 6.3), and the number that keeps its noise apart from every codebook's.
constexpr float kRedrawTemperature = 1.0f, kRedrawTopP = 0.9f;
constexpr uint32_t kRedrawNumber = 1000;

ops::SampleRow sample_row(const FrameRequest& request, int64_t number) {
  ops::SampleRow row;
  row.temperature = request.temperature;
  row.top_p = request.top_p;
  row.top_k = request.top_k;
  row.repetition_penalty = request.repetition_penalty;
  row.seed = request.seed;
  row.frame = request.frame;
  row.codebook = static_cast<uint32_t>(number);
  return row;
}

bool contains(std::span<const int32_t> values, int32_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

HeadTokens::HeadTokens(const Config& config, bool semantic)
    : semantic_begin_(config.semantic_begin),
      semantic_end_(config.semantic_end),
      im_end_(config.im_end),
      semantic_(semantic),
      rows_(semantic ? config.semantic_end - config.semantic_begin + 2 : config.vocab_size) {}

int32_t HeadTokens::token(int32_t row) const {
  if (!semantic_) return row;
  return row + 1 == rows_ ? im_end_ : semantic_begin_ + row;
}

int32_t HeadTokens::row(int32_t token) const {
  if (!semantic_) return token < rows_ ? token : -1;
  if (token == im_end_) return static_cast<int32_t>(rows_) - 1;
  return is_semantic(token) ? token - semantic_begin_ : -1;
}

FrameSampler::FrameSampler(const Config& config, bool semantic_head)
    : head_(config, semantic_head), columns_(config.columns()), codebook_size_(config.codebook_size) {}

int32_t FrameSampler::code_of(int32_t token) const {
  const int64_t code = int64_t{token} - head_.semantic_begin();
  return static_cast<int32_t>(std::clamp<int64_t>(code, 0, codebook_size_ - 1));
}

void FrameSampler::draw_tokens(ops::Context& ctx, TensorView logits, std::span<const FrameRequest> requests,
                               std::span<int32_t> frames) const {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = logits.dim(0);
  const auto rows = step_array<ops::SampleRow>(*ctx.workspace, count);
  const auto drawn = step_array<int32_t>(*ctx.workspace, count);
  const int64_t most_penalised = std::max(columns_, kPenaltyWindow);
  const auto penalised = step_array<int32_t>(*ctx.workspace, count * most_penalised);

  for (size_t i = 0; i < rows.size(); ++i) {
    const FrameRequest& request = requests[i];
    CHECK(static_cast<int64_t>(request.penalised_tokens.size()) <= most_penalised);
    rows[i] = sample_row(request, 0);
    int32_t* const first = &penalised[i * static_cast<size_t>(most_penalised)];
    int32_t* last = first;
    for (int32_t token : request.penalised_tokens)
      if (const int32_t row = head_.row(token); row >= 0) *last++ = row;
    rows[i].penalised = {first, last};
    if (request.semantic_only) {
      rows[i].allowed_begin = head_.row(head_.semantic_begin());
      rows[i].allowed_end = head_.row(head_.semantic_end());
      rows[i].allowed_extra = head_.row(head_.im_end());
    }
  }
  ops::sample(ctx, logits, rows, drawn);

  for (size_t i = 0; i < rows.size(); ++i) {
    int32_t token = head_.token(drawn[i]);
    if (head_.is_semantic(token) && contains(requests[i].recent_tokens, token)) {
      rows[i].temperature = kRedrawTemperature;
      rows[i].top_p = kRedrawTopP;
      rows[i].codebook = kRedrawNumber;
      const auto at = static_cast<int64_t>(i);
      ops::sample(ctx, logits.slice(at, at + 1), rows.subspan(i, 1), drawn.subspan(i, 1));
      token = head_.token(drawn[i]);
    }
    frames[i * static_cast<size_t>(columns_)] = token;
    frames[i * static_cast<size_t>(columns_) + 1] = code_of(token);
  }
}

void FrameSampler::draw_codes(ops::Context& ctx, TensorView logits, std::span<const FrameRequest> requests,
                              int64_t codebook, std::span<int32_t> frames) const {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = logits.dim(0);
  const auto rows = step_array<ops::SampleRow>(*ctx.workspace, count);
  const auto drawn = step_array<int32_t>(*ctx.workspace, count);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = sample_row(requests[i], codebook);
    const std::span<const int32_t> all = requests[i].penalised_codes;
    if (all.empty()) continue;
    CHECK(static_cast<int64_t>(all.size()) == (columns_ - 1) * kPenaltyWindow);
    rows[i].penalised = all.subspan(static_cast<size_t>(codebook * kPenaltyWindow), kPenaltyWindow);
  }
  ops::sample(ctx, logits, rows, drawn);
  for (size_t i = 0; i < rows.size(); ++i)
    frames[i * static_cast<size_t>(columns_) + 1 + static_cast<size_t>(codebook)] = drawn[i];
}

}  // namespace shoal::dual_ar
