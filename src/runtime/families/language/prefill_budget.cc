#include "runtime/families/language/prefill_budget.h"

#include <algorithm>

#include "ops/device_state.h"
#include "runtime/schedule/job_rules.h"

namespace shoal::runtime {
namespace {

// The smallest useful number of prompt columns in a step; and the largest number beside a listener with lead,
// while the cost is unknown.
constexpr int64_t kLeastColumns = 32, kUnmeasuredColumns = 256;

constexpr int64_t kUsualColumns = 256;
// Rows of a GPU's step, which it takes hardly faster if there are few: with 2,048 columns instead of 256, 256
// users get 4 % more sound a second, and their first sound nearly five times as early (docs/PERF.md). In all,
// for products are cut into blocks of 128 rows: 2,048 / 2,056 take a layer of S1-mini 142 / 164 us on an
// H200.
constexpr int64_t kFewestRows = 256, kMostRows = 2048, kRowsOfSequence = 32;

}  // namespace

StepSize size_of_a_step(const EngineConfig& config, Device device) {
  const int64_t sequences = config.max_batch_size;
  if (config.prefill_columns > 0) return {config.prefill_columns, config.prefill_columns + sequences};
  if (!ops::computes_by_itself(device)) return {kUsualColumns, kUsualColumns + sequences};
  const int64_t rows = std::clamp(kRowsOfSequence * sequences, kFewestRows, kMostRows);
  return {rows, rows};
}

void PrefillBudget::measure(int64_t columns, int64_t took_us) {
  if (columns < kLeastColumns) return;
  const double cost = static_cast<double>(took_us) / static_cast<double>(columns);
  column_cost_us_ = column_cost_us_ == 0 ? cost : column_cost_us_ * 0.8 + cost * 0.2;
}

int64_t PrefillBudget::columns(std::span<const ActiveJob> active) const {
  int64_t columns = most_.columns, rows = most_.rows;
  for (const ActiveJob& job : active) {
    rows -= is_speaking(job);
    const bool ahead = is_running(job) && job.frames > 0 && job.lead_us >= 2 * frame_us_;
    if (!ahead) continue;
    const double affordable = column_cost_us_ == 0 ? static_cast<double>(kUnmeasuredColumns)
                                                   : static_cast<double>(job.lead_us) / column_cost_us_;
    columns = std::min(columns, static_cast<int64_t>(affordable));
  }
  return std::min(most_.columns, std::max(kLeastColumns, std::min(columns, rows)));
}

}  // namespace shoal::runtime
