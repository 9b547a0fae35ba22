#include "ops/sample.h"

#include <cmath>

#include "ops/cpu_backend.h"

namespace shoal::ops {
namespace {

void check_vocabulary(int64_t vocab) {
  if (vocab < 1 || vocab > kMostVocabulary)
    fail(ErrorCode::unsupported, "sample: ", vocab, " logits, expected 1 to ", kMostVocabulary);
}

void check_token(const char* name, int64_t id, int64_t vocab) {
  if (id < 0 || id >= vocab)
    fail(ErrorCode::invalid_argument, "sample: ", name, " is ", id, ", the vocabulary has ", vocab, " ids");
}

void check_row(const SampleRow& row, int64_t vocab) {
  if (!(row.temperature >= 0) || !std::isfinite(row.temperature))
    fail(ErrorCode::invalid_argument, "sample: temperature is ", row.temperature, ", expected 0 or more");
  if (!(row.top_p >= 0))
    fail(ErrorCode::invalid_argument, "sample: top_p is ", row.top_p, ", expected 0 to 1");
  if (row.top_k < 0)
    fail(ErrorCode::invalid_argument, "sample: top_k is ", row.top_k, ", expected 0 or more");
  if (!(row.repetition_penalty > 0) || !std::isfinite(row.repetition_penalty))
    fail(ErrorCode::invalid_argument, "sample: repetition_penalty is ", row.repetition_penalty,
         ", expected more than 0");
  for (const int32_t id : row.penalised) check_token("a penalised id", id, vocab);
  if (row.allowed_end < 0) return;
  check_token("allowed_begin", row.allowed_begin, vocab);
  check_token("allowed_end", row.allowed_end, vocab);
  if (row.allowed_extra >= 0) check_token("allowed_extra", row.allowed_extra, vocab);
}

}  // namespace

SamplingDistribution sampling_distribution(std::span<const float> logits, const SampleRow& row) {
  const int64_t vocab = static_cast<int64_t>(logits.size());
  check_vocabulary(vocab);
  check_row(row, vocab);
  return cpu::sampling_distribution(logits, row);
}

void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens) {
  CHECK(on_cpu(ctx), "sample: on the CPU only");
  CHECK(logits.rank() == 2 && logits.dtype() == DType::f32, "sample: logits are ", name_of(logits.dtype()),
        " ", logits.shape(), ", expected F32 [rows, vocab]");
  CHECK(static_cast<int64_t>(rows.size()) == logits.dim(0) && tokens.size() == rows.size(),
        "sample: ", rows.size(), " settings and ", tokens.size(), " tokens for logits ", logits.shape());
  if (rows.empty()) return;
  check_vocabulary(logits.dim(1));
  for (const SampleRow& row : rows) check_row(row, logits.dim(1));
  cpu::sample(ctx, logits, rows, tokens);
}

}  // namespace shoal::ops
