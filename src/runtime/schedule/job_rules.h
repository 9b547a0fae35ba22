// What admission and steps both need to know of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "runtime/schedule/schedule.h"

namespace shoal::runtime {

// Both kinds of job, waiting and active.
template <typename Job>
bool is_older(const Job& a, const Job& b) {
  return std::tie(a.arrival_us, a.id) < std::tie(b.arrival_us, b.id);
}

// Why a job ends now, if it does.
template <typename Job>
std::optional<ErrorCode> end_of(const Job& job, int64_t now_us) {
  if (job.cancelled) return ErrorCode::cancelled;
  if (job.deadline_us != 0 && job.deadline_us <= now_us) return ErrorCode::deadline_exceeded;
  return std::nullopt;
}

inline bool is_running(const ActiveJob& job) { return !job.paused && !job.finishing; }

// Only the column of its last frame is missing. Not so when it computes its columns again after a preemption.
inline bool has_prompt_behind(const ActiveJob& job) {
  return !job.finishing && job.frames > 0 && job.columns - job.columns_done == 1;
}

inline bool is_speaking(const ActiveJob& job) { return is_running(job) && has_prompt_behind(job); }

inline int64_t pages_for(int64_t columns, int64_t page_size) { return (columns + page_size - 1) / page_size; }

// Pages beyond those it holds that a running job will certainly need soon: for all of its columns and a
// frame; for a speaking job one page, which lasts for page_size frames.
inline int64_t pages_promised(const ActiveJob& job, int64_t page_size) {
  if (is_speaking(job)) return 1;
  const int64_t missing = pages_for(job.columns + 1, page_size) - job.pages_held;
  return missing > 0 ? missing : 0;
}

// The pages that are freed when it ends.
inline int64_t pages_returned(const ActiveJob& job) { return job.pages_held - job.pages_shared; }

// Throws Error(internal) unless every number is in its range.
void check_limits(const ScheduleLimits& limits);

}  // namespace shoal::runtime
