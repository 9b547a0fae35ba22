#include "runtime/families/language/prefill_budget.h"

#include <algorithm>

#include "runtime/schedule/job_rules.h"

namespace shoal::runtime {
namespace {

// The smallest useful number of prompt columns in a step; and the largest number beside a listener with lead,
// while the cost is unknown.
constexpr int64_t kLeastColumns = 32, kUnmeasuredColumns = 256;

}  // namespace

void PrefillBudget::measure(int64_t columns, int64_t took_us) {
  if (columns < kLeastColumns) return;
  const double cost = static_cast<double>(took_us) / static_cast<double>(columns);
  column_cost_us_ = column_cost_us_ == 0 ? cost : column_cost_us_ * 0.8 + cost * 0.2;
}

int64_t PrefillBudget::columns(std::span<const ActiveJob> active) const {
  int64_t columns = most_.columns, rows = most_.rows;
  for (const ActiveJob& job : active) {
    rows -= is_speaking(job);
    const bool ahead = job.frames > 0 && !job.paused && !job.finishing && job.lead_us >= 2 * frame_us_;
    if (!ahead) continue;
    const double affordable = column_cost_us_ == 0 ? static_cast<double>(kUnmeasuredColumns)
                                                   : static_cast<double>(job.lead_us) / column_cost_us_;
    columns = std::min(columns, static_cast<int64_t>(affordable));
  }
  return std::min(most_.columns, std::max(kLeastColumns, std::min(columns, rows)));
}

}  // namespace shoal::runtime
