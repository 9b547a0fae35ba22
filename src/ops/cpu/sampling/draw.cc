// The draws of a frame on the CPU: sample (sample.h) with settings that are translated to rows of the head.
#include "ops/draw.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/cpu_backend.h"
#include "ops/sample.h"

namespace shoal::ops::cpu {
namespace {

template <typename T>
std::span<T> alloc_array(Context& ctx, int64_t count) {
  const std::span<T> array = ctx.workspace->array<T>(count);
  std::uninitialized_value_construct(array.begin(), array.end());
  return array;
}

DrawRow settings_of(const DrawTable& table, int64_t row, int64_t codes) {
  DrawRow settings;
  std::memcpy(&settings, table.rows.row<uint8_t>(row), sizeof settings);
  const auto check = [](const char* name, int64_t count, int64_t most) {
    CHECK(0 <= count && count <= most, "draw: ", count, " ", name, ", expected at most ", most);
  };
  check("penalised tokens", settings.penalised_tokens, kMostPenalised);
  check("recent tokens", settings.recent, kMostRecent);
  check("penalised codes", settings.penalised_codes, codes);
  return settings;
}

int64_t most_codes(const DrawTable& table) { return table.codes.empty() ? 0 : table.codes.dim(2); }

SampleRow sample_row(const DrawRow& settings, uint32_t number) {
  SampleRow row;
  row.temperature = settings.temperature;
  row.top_p = settings.top_p;
  row.top_k = settings.top_k;
  row.repetition_penalty = settings.repetition_penalty;
  row.seed = settings.seed;
  row.frame = settings.frame;
  row.codebook = number;
  return row;
}

// TokenHead for a number of rows.
class HeadRows {
 public:
  HeadRows(const TokenHead& head, int64_t rows) : head_(head), rows_(rows) {}

  int32_t token(int32_t row) const {
    if (!head_.semantic) return row;
    return row + 1 == rows_ ? head_.im_end : head_.semantic_begin + row;
  }
  // -1 when the head has no row for the token.
  int32_t row(int32_t token) const {
    if (!head_.semantic) return token >= 0 && token < rows_ ? token : -1;
    if (token == head_.im_end) return static_cast<int32_t>(rows_) - 1;
    return is_semantic(token) ? token - head_.semantic_begin : -1;
  }
  bool is_semantic(int32_t token) const {
    return token >= head_.semantic_begin && token <= head_.semantic_end;
  }
  int32_t code(int32_t token) const {
    const int64_t code = int64_t{token} - head_.semantic_begin;
    return static_cast<int32_t>(std::clamp<int64_t>(code, 0, head_.codebook_size - 1));
  }

 private:
  const TokenHead& head_;
  int64_t rows_;
};

bool is_recent(const DrawRow& settings, int32_t token) {
  const int32_t* const end = settings.recent_tokens + settings.recent;
  return std::find(settings.recent_tokens, end, token) != end;
}

}  // namespace

void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = logits.dim(0);
  const HeadRows heads(head, logits.dim(1));
  const auto settings = alloc_array<DrawRow>(ctx, count);
  const auto rows = alloc_array<SampleRow>(ctx, count);
  const auto drawn = alloc_array<int32_t>(ctx, count);
  const auto penalised = alloc_array<int32_t>(ctx, count * kMostPenalised);

  for (size_t i = 0; i < rows.size(); ++i) {
    settings[i] = settings_of(table, static_cast<int64_t>(i), most_codes(table));
    rows[i] = sample_row(settings[i], 0);
    int32_t* const first = &penalised[i * kMostPenalised];
    int32_t* last = first;
    for (int32_t k = 0; k < settings[i].penalised_tokens; ++k)
      if (const int32_t row = heads.row(settings[i].tokens[k]); row >= 0) *last++ = row;
    rows[i].penalised = {first, last};
    if (settings[i].restricted) {
      rows[i].allowed_begin = heads.row(head.semantic_begin);
      rows[i].allowed_end = heads.row(head.semantic_end);
      rows[i].allowed_extra = heads.row(head.im_end);
    }
  }
  ops::sample(ctx, logits, rows, drawn);

  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    int32_t token = heads.token(drawn[i]);
    if (heads.is_semantic(token) && is_recent(settings[i], token)) {
      rows[i].temperature = kRedrawTemperature;
      rows[i].top_p = kRedrawTopP;
      rows[i].codebook = kRedrawNumber;
      ops::sample(ctx, logits.slice(at, at + 1), rows.subspan(i, 1), drawn.subspan(i, 1));
      token = heads.token(drawn[i]);
    }
    int32_t* const frame = frames.row<int32_t>(at);
    frame[0] = token;
    frame[1] = heads.code(token);
  }
}

void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook,
                TensorView frames) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t count = logits.dim(0), most = most_codes(table);
  const auto rows = alloc_array<SampleRow>(ctx, count);
  const auto drawn = alloc_array<int32_t>(ctx, count);
  const auto penalised = alloc_array<int32_t>(ctx, count * most);
  for (int64_t i = 0; i < count; ++i) {
    const DrawRow settings = settings_of(table, i, most);
    SampleRow& row = rows[static_cast<size_t>(i)];
    row = sample_row(settings, static_cast<uint32_t>(codebook));
    if (settings.penalised_codes == 0) continue;
    const int32_t* const codes = table.codes.row<int32_t>(i) + codebook * most;
    int32_t* const first = penalised.data() + i * most;
    row.penalised = {first, std::copy_if(codes, codes + settings.penalised_codes, first,
                                         [&](int32_t code) { return 0 <= code && code < logits.dim(1); })};
  }
  ops::sample(ctx, logits, rows, drawn);
  for (int64_t i = 0; i < count; ++i) frames.row<int32_t>(i)[1 + codebook] = drawn[static_cast<size_t>(i)];
}

}  // namespace shoal::ops::cpu
