// What the language model does next. Pure: no clock, lock, device or I/O, so tests replay it step
// by step.
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

// A request that has been admitted. Its columns are its prompt's and, once it speaks, one for every frame; a
// step computes some of those that are not in its pages yet, and a frame follows the last of them.
struct ActiveJob {
  JobId id = 0;
  uint64_t client = 0, voice = 0;
  int64_t arrival_us = 0, deadline_us = 0;
  int64_t columns = 0;       // that must have been computed before the next frame
  int64_t columns_done = 0;  // in its pages; below `columns` unless it is finishing
  int64_t pages_held = 0;
  int64_t pages_shared = 0;  // of these, others hold them too: they do not come back if it goes
  bool started = false;      // has taken what was cached of its prompt: the rest is its own to compute
  int64_t frames = 0;        // generated of the current utterance; 0: in its prompt
  int64_t lead_us = 0;       // sound that its listener has yet to hear
  bool cancelled = false;
  bool paused = false;     // its reader is slow: no frame, but it keeps what it has
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
  int64_t wake_us = 0;          // when to ask again if nothing else happens; 0: no need
};

// Who enters. All may be held back for batch_timeout_us after the oldest's arrival while company can still
// come (fewer waiting than there is room). Room is max_batch_size less active jobs that are neither paused
// nor finishing, and max_streams less all active jobs. One after another: the client with the fewest active
// jobs (ties: whose oldest job is older) sends its oldest job; with batch_grouping its voice's other waiting
// jobs follow, the shortest prompt first, of any client that would not thereby exceed its even share of
// max_batch_size while others wait. A job enters only if pages for its prompt and one frame can be had (also
// from paused jobs) beside those promised to jobs before it, active ones included: the rest of a prompt and
// one frame, or one more page for a speaking job. Or if nothing runs. The first that does not fit ends the
// round, so that a long prompt is not overtaken for ever.
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

// Whether `job` has not started, an older active job of its voice (not 0; ties by id), not paused, is still
// computing its prompt, and no job of the voice has one behind it: more will be found later.
bool waits_for_prefix(const ActiveJob& job, std::span<const ActiveJob> active);

// One step. Cancelled and late jobs end, but finishing ones are left to whoever makes their sound. Speaking
// jobs (one column before a frame that is not their first) go first, at most max_batch_size of them (beyond
// it those with the least lead, then the oldest). Then prompts, and jobs that compute again what preemption
// took, oldest first, cut to prefill_columns in all and to max_batch_size rows with a frame; a last column
// waits for its place. A prompt that waits_for_prefix gets no rows, nor do paused and finishing jobs.
//
// A prompt goes on only if the pages for all of it and one frame can be had (also from paused jobs) beside
// one for each speaking job, and in a step that preempts for nobody else; otherwise it and all younger ones
// wait: begun too early it would soon be preempted. A speaking job that needs a page preempts paused jobs,
// then younger prompts, then younger speaking jobs, the youngest first each time; if that is not enough it
// waits. The oldest job that is not paused preempts likewise in its prompt, and is never preempted itself: so
// there is always one that goes on.
//
// Rows of a job that has not started mean that its prefix is to be looked up now: do so for all of those, and
// plan the step again. Not earlier: a prompt that waits must not hold pages, or preemption would not free
// them.
StepPlan plan_step(std::span<const ActiveJob> active, const ScheduleLimits& limits, int64_t now_us);

}  // namespace shoal::runtime
