#include "models/dual_ar/step_memory.h"

#include <algorithm>
#include <iterator>

#include "ops/block_layout.h"
#include "ops/transfer.h"

namespace shoal::dual_ar {
namespace {

// Sizes that steps are recorded with; beyond them, multiples of the last.
constexpr int64_t kRecordedRows[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr int64_t kMostListedRows = std::end(kRecordedRows)[-1];

template <typename Value>
std::vector<int32_t> ids(int64_t count, Value value) {
  std::vector<int32_t> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(value(i)));
  return values;
}

StepArrays lay_out(const ops::StepBlock* block, int64_t rows, int64_t columns, int64_t pages) {
  constexpr auto kDrawBytes = static_cast<int64_t>(sizeof(ops::DrawRow));
  ops::BlockLayout layout(block);
  StepArrays a;
  a.frames = layout.next<int32_t>(rows * columns, DType::i32, {rows, columns}, &a.device_frames);
  a.frames_bytes = layout.bytes();
  a.columns = layout.next<int32_t>(rows * columns, DType::i32, {rows, columns}, &a.device_columns);
  a.positions = layout.next<int32_t>(rows, DType::i32, {rows}, &a.tables.positions);
  a.page_table = layout.next<int32_t>(rows * pages, DType::i32, {rows, pages}, &a.tables.page_table);
  a.draws = layout.next<ops::DrawRow>(rows, DType::u8, {rows, kDrawBytes}, &a.draw_table.rows);
  a.penalised_codes = layout.next<int32_t>(rows * (columns - 1) * kPenaltyWindow, DType::i32,
                                           {rows, columns - 1, kPenaltyWindow}, &a.draw_table.codes);
  a.bytes = layout.bytes();
  return a;
}

ops::DrawRow draw_row(const FrameRequest& request) {
  ops::DrawRow row{.seed = request.seed,
                   .frame = request.frame,
                   .top_k = request.top_k,
                   .temperature = request.temperature,
                   .top_p = request.top_p,
                   .repetition_penalty = request.repetition_penalty,
                   .restricted = request.semantic_only,
                   .penalised_tokens = static_cast<int32_t>(request.penalised_tokens.size()),
                   .penalised_codes = request.penalised_codes.empty() ? 0 : int32_t{kPenaltyWindow},
                   .recent = static_cast<int32_t>(request.recent_tokens.size())};
  CHECK(row.penalised_tokens <= ops::kMostPenalised && row.recent <= ops::kMostRecent, row.penalised_tokens,
        " penalised tokens, ", row.recent, " recent ones");
  std::copy(request.penalised_tokens.begin(), request.penalised_tokens.end(), row.tokens);
  std::copy(request.recent_tokens.begin(), request.recent_tokens.end(), row.recent_tokens);
  return row;
}

}  // namespace

ConstantIds::ConstantIds(ops::Context& ctx, std::vector<int32_t> values) : host(std::move(values)) {
  Tensor copy(DType::i32, {static_cast<int64_t>(host.size())});
  std::copy(host.begin(), host.end(), copy.as<int32_t>());
  device = ops::resident(ctx, std::move(copy));
}

StepMemory::StepMemory(ops::Context& ctx, const Config& config, int64_t rows, int64_t pages_per_sequence)
    : serial_(ops::new_step_serial()),
      columns_(config.columns()),
      codebooks_(config.num_codebooks),
      rows_(rows),
      pages_per_sequence_(pages_per_sequence),
      hidden_(ops::new_tensor(ctx, DType::f32, {rows, config.slow.dim})),
      block_(ctx, lay_out(nullptr, rows, columns_, pages_per_sequence).bytes),
      counting_(ctx, ids(2 * rows + 1, [](int64_t i) { return i; })),
      pair_offsets_(ctx, ids(rows + 1, [](int64_t i) { return 2 * i; })),
      pair_sequences_(ctx, ids(2 * rows, [](int64_t i) { return i / 2; })),
      pair_positions_(ctx, ids(2 * rows, [](int64_t i) { return i % 2; })) {
  CHECK(rows >= 1 && pages_per_sequence >= 1, rows, " rows of ", pages_per_sequence, " pages");
  ops::fill_zero(ctx, hidden_);
  for (int64_t pass = 0; pass < codebooks_; ++pass)
    pass_positions_.emplace_back(ctx, ids(rows, [pass](int64_t) { return pass; }));
}

StepArrays StepMemory::arrays(int64_t rows) const {
  CHECK(rows <= rows_, rows, " rows in memory for ", rows_);
  StepArrays arrays = lay_out(&block_, rows, columns_, pages_per_sequence_);
  arrays.tables.offsets = counting_.device_first(rows + 1);
  arrays.tables.sequences = counting_.device_first(rows);
  arrays.tables.single_rows = true;
  return arrays;
}

int64_t StepMemory::padded_rows(const ops::Context& ctx, int64_t rows) const {
  return ctx.graphs ? std::min(rows_, recorded_rows(rows)) : rows;
}

int64_t StepMemory::bytes_of(const Config& config, int64_t rows, int64_t pages_per_sequence) {
  const int64_t hidden = rows * config.slow.dim * int64_t{sizeof(float)};
  return hidden + lay_out(nullptr, rows, config.columns(), pages_per_sequence).bytes;
}

int64_t StepMemory::recorded_rows(int64_t rows) {
  const auto fit = std::ranges::lower_bound(kRecordedRows, rows);
  return fit != std::end(kRecordedRows) ? *fit
                                        : (rows + kMostListedRows - 1) / kMostListedRows * kMostListedRows;
}

int64_t StepMemory::recorded_sizes(int64_t rows) {
  if (rows > kMostListedRows) return std::ssize(kRecordedRows) + (rows - 1) / kMostListedRows;
  return std::ranges::lower_bound(kRecordedRows, rows) - std::begin(kRecordedRows) + 1;
}

void StepMemory::write(const StepArrays& arrays, std::span<const FrameRequest> requests) const {
  for (size_t i = 0; i < arrays.draws.size(); ++i) {
    arrays.draws[i] = i < requests.size() ? draw_row(requests[i]) : ops::DrawRow{};
    if (i >= requests.size() || requests[i].penalised_codes.empty()) continue;
    const std::span<const int32_t> codes = requests[i].penalised_codes;
    CHECK(static_cast<int64_t>(codes.size()) == codebooks_ * kPenaltyWindow, codes.size(),
          " penalised codes");
    std::copy(codes.begin(), codes.end(),
              arrays.penalised_codes.begin() + static_cast<std::ptrdiff_t>(i * codes.size()));
  }
}

void StepMemory::write(const StepArrays& arrays, const ops::BatchPlan& plan,
                       std::span<const int32_t> columns) const {
  const auto rows = static_cast<int64_t>(plan.positions.size());
  std::fill(std::copy(columns.begin(), columns.end(), arrays.columns.begin()), arrays.columns.end(), 0);
  std::fill(std::copy(plan.positions.begin(), plan.positions.end(), arrays.positions.begin()),
            arrays.positions.end(), -1);
  // Table entries after a row's pages keep their old values: attention reads only entries of visible
  // positions, and rewriting a table with room for the longest context would be most of the writes.
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(plan.page_table.begin() + row * plan.pages_per_sequence, plan.pages_per_sequence,
                arrays.page_table.begin() + row * pages_per_sequence_);
}

}  // namespace shoal::dual_ar
