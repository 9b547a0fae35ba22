// Plans what the language model does next. Pure: no clock, lock, device or I/O, so tests replay it step by
// step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/error.h"

namespace shoal::runtime {

using JobId = uint64_t;

// A request that waits to be admitted.
struct WaitingJob {
  JobId id = 0;
  uint64_t client = 0;      // whose it is
  uint64_t voice = 0;       // of its prompt; 0: none
  int64_t arrival_us = 0;   // when it was queued; ties by id
  int64_t deadline_us = 0;  // 0: none
  int64_t prompt_columns = 0;
  bool cancelled = false;
};

// An admitted request. Its columns are those of its prompt and, once it speaks, one per frame; a step
// computes some of the columns that are not in its pages yet, and a frame follows the last of them.
struct ActiveJob {
  JobId id = 0;
  uint64_t client = 0, voice = 0;
  int64_t arrival_us = 0, deadline_us = 0;
  int64_t columns = 0;       // that must have been computed before the next frame
  int64_t columns_done = 0;  // in its pages; below `columns` unless it is finishing
  int64_t pages_held = 0;
  int64_t pages_shared = 0;  // of these, others hold them too: they do not come back if it goes
  bool started = false;      // has taken the cached part of its prompt; it computes the rest itself
  int64_t frames = 0;        // generated of the current utterance; 0: in its prompt
  int64_t lead_us = 0;       // sound that its listener has yet to hear
  bool cancelled = false;
  bool paused = false;     // its reader is slow: no frames, but it keeps its pages
  bool finishing = false;  // generation has ended, its sound is on the way: no columns, no pages
};

struct ScheduleLimits {
  int64_t max_batch_size = 1;
  int64_t max_streams = 1;      // active jobs, paused and finishing ones included
  int64_t prefill_columns = 1;  // of one step
  int64_t page_size = 1;
  int64_t pages_available = 0;  // free or only cached
  int64_t batch_timeout_us = 0;
  bool batch_grouping = true;
};

// A job that ends now, and why: cancelled or deadline_exceeded.
struct JobEnd {
  JobId id = 0;
  ErrorCode why = ErrorCode::cancelled;
};

struct Admission {
  std::vector<JobEnd> ends;     // waiting jobs
  std::vector<JobId> admitted;  // in the order in which they enter
  int64_t wake_us = 0;          // when to plan again if nothing else happens; 0: no need
};

// Which waiting jobs enter. All may be held back until batch_timeout_us after the oldest arrival, while more
// jobs can still join (fewer wait than there is room for). Room is max_batch_size minus active jobs that are
// neither paused nor finishing, and max_streams minus all active jobs. In turn: the client with the fewest
// active jobs (ties: the older oldest job) sends its oldest job. With batch_grouping the waiting jobs of the
// same voice follow, the shortest prompt first, of any client that would not thereby exceed its even share of
// max_batch_size while others wait. A job enters only if there are pages (also from paused jobs) for its
// prompt and one frame, beyond the pages promised to earlier jobs including active ones: the rest of a prompt
// and one frame, or one more page for a speaking job. If nothing runs, it enters in any case. The first job
// that does not fit ends the round, so that a long prompt is not overtaken forever.
Admission plan_admission(std::span<const WaitingJob> waiting, std::span<const ActiveJob> active,
                         const ScheduleLimits& limits, int64_t now_us);

// Columns of one job in one step.
struct StepRows {
  JobId id = 0;
  int64_t columns = 0;  // >= 1, from columns_done on
  bool frame = false;   // they are the last: a frame follows
};

struct StepPlan {
  std::vector<JobEnd> ends;      // give their pages back first
  std::vector<JobId> preempted;  // give all their pages back; later they compute their columns again
  std::vector<StepRows> rows;    // those with a frame first
};

// Whether `job` should wait: it has not started, an older active job of its voice (not 0; ties by id) that is
// not paused is still computing its prompt, and no job of the voice has computed one. It will find more
// columns in the cache later.
bool waits_for_prefix(const ActiveJob& job, std::span<const ActiveJob> active);

// Plans one step. Cancelled and late jobs end, except finishing ones, which the codec loop ends. Speaking
// jobs (one column before a frame that is not their first) go first, at most max_batch_size of them (beyond
// that, those with the least lead, then the oldest). Then come prompts, and jobs that recompute columns after
// a preemption: oldest first, cut to prefill_columns in all and to max_batch_size rows with a frame; a last
// column waits for its place. A prompt for which waits_for_prefix is true gets no rows, nor do paused and
// finishing jobs.
//
// A prompt continues only if there are pages (also from paused jobs) for all of it and one frame, beside one
// page for each speaking job, and only in a step that preempts for no other job. Otherwise it and all younger
// prompts wait: if they started too early they would soon be preempted. A speaking job that needs a page
// preempts paused jobs, then younger prompts, then younger speaking jobs, always the youngest first; if that
// is not enough it waits. The oldest job that is not paused preempts in the same way for its prompt and is
// never preempted itself, so one job always makes progress.
//
// If the plan gives rows to jobs that have not started, look up their prefixes now, for all of them, and plan
// the step again. Not earlier: a waiting prompt must not hold pages, or preemption would not free them.
StepPlan plan_step(std::span<const ActiveJob> active, const ScheduleLimits& limits, int64_t now_us);

}  // namespace shoal::runtime
