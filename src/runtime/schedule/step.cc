// plan_step: one function for each rule.
#include <algorithm>

#include "base/error.h"
#include "runtime/schedule/job_rules.h"

namespace shoal::runtime {
namespace {

class StepPlanner {
 public:
  StepPlanner(std::span<const ActiveJob> active, const ScheduleLimits& limits);
  StepPlan plan(int64_t now_us) &&;

 private:
  enum class Turn { none, row, preempted };
  struct Entry {
    const ActiveJob* job;
    Turn turn = Turn::none;
  };

  void end_jobs(int64_t now_us);
  void sort_by_kind();

  void prefill_oldest();
  void advance_speaking();
  void prefill_others();

  int64_t prompt_columns(const Entry& entry) const;
  int64_t spare_pages() const;

  int64_t pages_needed(const Entry& entry, int64_t columns) const;
  void make_room(int64_t pages, const Entry& taker);
  bool gives_way(const Entry& victim, const Entry& taker) const;
  void preempt(Entry& victim);
  void add_row(Entry& entry, int64_t columns);

  std::span<const ActiveJob> active_;
  const ScheduleLimits& limits_;
  int64_t pages_left_, columns_left_, frames_left_;
  std::vector<Entry> entries_;              // neither ended nor finishing, oldest first
  std::vector<Entry*> prompts_, speaking_;  // of entries_, oldest first
  // Jobs that can still be preempted; the last one is next.
  std::vector<Entry*> paused_victims_, prompt_victims_, speaking_victims_;
  int64_t promised_to_oldest_ = 0;  // pages, if it is in its prompt
  StepPlan plan_;
};

StepPlanner::StepPlanner(std::span<const ActiveJob> active, const ScheduleLimits& limits)
    : active_(active),
      limits_(limits),
      pages_left_(limits.pages_available),
      columns_left_(limits.prefill_columns),
      frames_left_(limits.max_batch_size) {
  check_limits(limits);
}

StepPlan StepPlanner::plan(int64_t now_us) && {
  end_jobs(now_us);
  sort_by_kind();
  prefill_oldest();
  advance_speaking();
  prefill_others();
  std::ranges::stable_partition(plan_.rows, &StepRows::frame);
  return std::move(plan_);
}

void StepPlanner::end_jobs(int64_t now_us) {
  for (const ActiveJob& job : active_) {
    if (job.finishing) continue;
    if (const auto why = end_of(job, now_us)) {
      plan_.ends.push_back({.id = job.id, .why = *why});
      pages_left_ += pages_returned(job);
      continue;
    }
    CHECK(job.columns_done < job.columns, "job ", job.id, " has computed ", job.columns_done, " of ",
          job.columns, " columns and is not finishing");
    entries_.push_back({.job = &job});
  }
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) { return is_older(*a.job, *b.job); });
}

void StepPlanner::sort_by_kind() {
  for (Entry& entry : entries_) {
    const ActiveJob& job = *entry.job;
    if (!job.paused) (is_speaking(job) ? speaking_ : prompts_).push_back(&entry);
    if (job.pages_held == 0) continue;
    (job.paused ? paused_victims_ : is_speaking(job) ? speaking_victims_ : prompt_victims_).push_back(&entry);
  }
}

// The oldest job that is not paused must always make progress, or no job might. When it speaks, it counts as
// an ordinary speaking job: no job is older.
void StepPlanner::prefill_oldest() {
  if (prompts_.empty()) return;
  Entry& entry = *prompts_.front();
  if (!speaking_.empty() && is_older(*speaking_.front()->job, *entry.job)) return;
  int64_t columns = prompt_columns(entry);
  make_room(pages_needed(entry, columns), entry);
  const int64_t pages = entry.job->pages_held + pages_left_;
  columns = std::min(columns, pages * limits_.page_size - entry.job->columns_done);
  promised_to_oldest_ = pages_promised(*entry.job, limits_.page_size);
  if (columns <= 0) return;
  promised_to_oldest_ -= pages_needed(entry, columns);
  add_row(entry, columns);
}

void StepPlanner::advance_speaking() {
  std::vector<Entry*> order = speaking_;
  if (std::ssize(order) > frames_left_) {
    std::ranges::stable_sort(order, {}, [](const Entry* entry) { return entry->job->lead_us; });
  }
  for (Entry* entry : order) {
    if (frames_left_ == 0) break;
    if (entry->turn == Turn::preempted) continue;
    const int64_t pages = pages_needed(*entry, 1);
    make_room(pages, *entry);
    if (pages <= pages_left_) add_row(*entry, 1);
  }
}

void StepPlanner::prefill_others() {
  if (!plan_.preempted.empty()) return;
  int64_t spare = spare_pages();
  for (Entry* entry : prompts_) {
    if (columns_left_ == 0) break;
    if (entry->turn != Turn::none || waits_for_prefix(*entry->job, active_)) continue;
    spare -= pages_promised(*entry->job, limits_.page_size);
    if (spare < 0) break;
    const int64_t columns = prompt_columns(*entry);
    if (columns == 0) continue;
    make_room(pages_needed(*entry, columns), *entry);
    add_row(*entry, columns);
  }
}

// Pages that prompts can be promised: speaking jobs will need one each, the oldest prompt the rest of its
// own.
int64_t StepPlanner::spare_pages() const {
  int64_t pages = pages_left_ - promised_to_oldest_;
  for (const Entry* entry : paused_victims_) pages += pages_returned(*entry->job);
  for (const Entry* entry : speaking_) {
    if (entry->turn != Turn::preempted) pages -= pages_promised(*entry->job, limits_.page_size);
  }
  return pages;
}

int64_t StepPlanner::prompt_columns(const Entry& entry) const {
  const int64_t missing = entry.job->columns - entry.job->columns_done;
  return std::min(columns_left_, frames_left_ > 0 ? missing : missing - 1);
}

int64_t StepPlanner::pages_needed(const Entry& entry, int64_t columns) const {
  const int64_t pages = pages_for(entry.job->columns_done + columns, limits_.page_size);
  return std::max<int64_t>(0, pages - entry.job->pages_held);
}

// Preempts until `pages` are free or no job may be preempted for `taker`.
void StepPlanner::make_room(int64_t pages, const Entry& taker) {
  for (std::vector<Entry*>* victims : {&paused_victims_, &prompt_victims_, &speaking_victims_}) {
    while (pages_left_ < pages && !victims->empty()) {
      Entry& victim = *victims->back();
      if (victim.turn == Turn::none && !gives_way(victim, taker)) break;
      victims->pop_back();
      if (victim.turn == Turn::none) preempt(victim);
    }
  }
}

// Only older jobs preempt younger ones, so that two jobs never preempt each other in turn. Prompts other than
// the oldest preempt only paused jobs, because they do not continue if that is not enough.
bool StepPlanner::gives_way(const Entry& victim, const Entry& taker) const {
  return victim.job->paused || is_older(*taker.job, *victim.job);
}

void StepPlanner::preempt(Entry& victim) {
  victim.turn = Turn::preempted;
  pages_left_ += pages_returned(*victim.job);
  plan_.preempted.push_back(victim.job->id);
}

void StepPlanner::add_row(Entry& entry, int64_t columns) {
  const ActiveJob& job = *entry.job;
  pages_left_ -= pages_needed(entry, columns);
  CHECK(pages_left_ >= 0, "job ", job.id, " was promised pages that are not there");
  const bool frame = job.columns_done + columns == job.columns;
  if (frame) --frames_left_;
  if (!is_speaking(job)) columns_left_ -= columns;
  entry.turn = Turn::row;
  plan_.rows.push_back({.id = job.id, .columns = columns, .frame = frame});
}

}  // namespace

bool waits_for_prefix(const ActiveJob& job, std::span<const ActiveJob> active) {
  if (job.started || job.voice == 0) return false;
  bool will_find_more = false;
  for (const ActiveJob& other : active) {
    if (other.voice != job.voice || other.finishing) continue;
    if (has_prompt_behind(other)) return false;
    will_find_more = will_find_more || (!other.paused && is_older(other, job));
  }
  return will_find_more;
}

StepPlan plan_step(std::span<const ActiveJob> active, const ScheduleLimits& limits, int64_t now_us) {
  return StepPlanner(active, limits).plan(now_us);
}

}  // namespace shoal::runtime
