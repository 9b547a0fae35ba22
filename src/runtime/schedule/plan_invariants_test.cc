// What must hold of every plan, and random loads that try to break it.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "runtime/schedule/replay_testing.h"

namespace shoal::runtime {
namespace {

// Written again from the contract, not shared with what is tested.
bool older(const ActiveJob& a, const ActiveJob& b) {
  return a.arrival_us != b.arrival_us ? a.arrival_us < b.arrival_us : a.id < b.id;
}
bool speaks(const ActiveJob& job) {
  return !job.paused && !job.finishing && job.frames > 0 && job.columns_done == job.columns - 1;
}
int64_t new_pages(const ActiveJob& job, int64_t columns, int64_t page_size) {
  int64_t pages = job.pages_held;
  while (pages * page_size < job.columns_done + columns) ++pages;
  return pages - job.pages_held;
}

// A plan beside the jobs it is of.
struct Read {
  Read(const StepPlan& plan, const std::vector<ActiveJob>& active) {
    for (const ActiveJob& job : active) jobs[job.id] = &job;
    for (const JobEnd& end : plan.ends) EXPECT_TRUE(ended.insert(end.id).second);
    for (const JobId id : plan.preempted) EXPECT_TRUE(preempted.insert(id).second);
    for (const StepRows& row : plan.rows) EXPECT_TRUE(rows.emplace(row.id, &row).second);
    for (const ActiveJob& job : active) {
      if (job.paused || job.finishing || ended.contains(job.id)) continue;
      if (oldest == nullptr || older(job, *oldest)) oldest = &job;
    }
  }
  bool untouched(const ActiveJob& job) const {
    return !ended.contains(job.id) && !preempted.contains(job.id) && !rows.contains(job.id);
  }
  std::map<JobId, const ActiveJob*> jobs;
  std::set<JobId> ended, preempted;
  std::map<JobId, const StepRows*> rows;
  const ActiveJob* oldest = nullptr;  // that goes on and is not paused
};

void expect_ends(const StepPlan& plan, const Read& read, int64_t now_us) {
  std::map<JobId, ErrorCode> want;
  for (const auto& [id, job] : read.jobs) {
    if (job->finishing) continue;
    if (job->deadline_us != 0 && now_us >= job->deadline_us) want[id] = ErrorCode::deadline_exceeded;
    if (job->cancelled) want[id] = ErrorCode::cancelled;
  }
  std::map<JobId, ErrorCode> got;
  for (const JobEnd& end : plan.ends) got[end.id] = end.why;
  EXPECT_EQ(got, want);
}

void expect_rows(const StepPlan& plan, const Read& read, const std::vector<ActiveJob>& active,
                 const ScheduleLimits& limits) {
  int64_t frames = 0, prefill = 0;
  EXPECT_TRUE(std::ranges::is_partitioned(plan.rows, &StepRows::frame));
  for (const StepRows& row : plan.rows) {
    ASSERT_TRUE(read.jobs.contains(row.id));
    const ActiveJob& job = *read.jobs.at(row.id);
    EXPECT_FALSE(job.paused || job.finishing || read.ended.contains(row.id) ||
                 read.preempted.contains(row.id));
    EXPECT_FALSE(waits_for_prefix(job, active) && &job != read.oldest);  // the one it waits for may end now
    EXPECT_GE(row.columns, 1);
    EXPECT_LE(job.columns_done + row.columns, job.columns);
    EXPECT_EQ(row.frame, job.columns_done + row.columns == job.columns);
    frames += row.frame;
    if (!speaks(job)) prefill += row.columns;
  }
  EXPECT_LE(frames, limits.max_batch_size);
  EXPECT_LE(prefill, limits.prefill_columns);
}

// Returns the pages that are left.
int64_t expect_pages(const StepPlan& plan, const Read& read, const ScheduleLimits& limits) {
  int64_t left = limits.pages_available;
  for (const JobId id : read.ended) left += read.jobs.at(id)->pages_held - read.jobs.at(id)->pages_shared;
  for (const JobId id : read.preempted) left += read.jobs.at(id)->pages_held - read.jobs.at(id)->pages_shared;
  for (const StepRows& row : plan.rows)
    left -= new_pages(*read.jobs.at(row.id), row.columns, limits.page_size);
  EXPECT_GE(left, 0);
  return left;
}

void expect_preemptions(const Read& read, const ScheduleLimits& limits) {
  int64_t most_wanted = 0;
  for (const auto& [id, job] : read.jobs) {
    if (job->paused || job->finishing || read.ended.contains(id)) continue;
    most_wanted += new_pages(*job, job->columns - job->columns_done, limits.page_size);
  }
  EXPECT_TRUE(read.preempted.empty() || most_wanted > limits.pages_available);
  for (const JobId id : read.preempted) {
    ASSERT_TRUE(read.jobs.contains(id));
    const ActiveJob& victim = *read.jobs.at(id);
    EXPECT_NE(&victim, read.oldest);
    EXPECT_FALSE(victim.finishing || read.ended.contains(id));
    EXPECT_GT(victim.pages_held, 0);
    for (const auto& [other_id, other] : read.jobs) {
      if (other == read.oldest || other->finishing || other->pages_held == 0 || !read.untouched(*other))
        continue;
      // Whoever is spared although it comes before the victim.
      const bool younger = older(victim, *other);
      const auto kind = [](const ActiveJob& job) { return job.paused ? 0 : speaks(job) ? 2 : 1; };
      EXPECT_FALSE(younger && kind(*other) <= kind(victim)) << other_id << " before " << id;
      EXPECT_FALSE(kind(*other) == 0 && kind(victim) != 0) << other_id << " before " << id;
    }
  }
}

void expect_speaking_go_first(const Read& read, const ScheduleLimits& limits, int64_t pages_left) {
  int64_t frames = 0;
  for (const auto& [id, row] : read.rows) frames += row->frame;
  for (const auto& [id, job] : read.jobs) {
    if (!speaks(*job) || !read.untouched(*job)) continue;
    EXPECT_TRUE(frames == limits.max_batch_size || new_pages(*job, 1, limits.page_size) > pages_left) << id;
  }
}

}  // namespace

void expect_sound(const StepPlan& plan, const std::vector<ActiveJob>& active, const ScheduleLimits& limits,
                  int64_t now_us) {
  const Read read(plan, active);
  expect_ends(plan, read, now_us);
  expect_rows(plan, read, active, limits);
  const int64_t pages_left = expect_pages(plan, read, limits);
  expect_preemptions(read, limits);
  expect_speaking_go_first(read, limits, pages_left);
  // All pages are the oldest's if it needs them, so it can always go on, unless others take every place.
  EXPECT_FALSE(read.oldest != nullptr && plan.rows.empty() && plan.preempted.empty()) << "nothing moves";
}

void expect_sound(const Admission& plan, const std::vector<WaitingJob>& waiting,
                  const std::vector<ActiveJob>& active, const ScheduleLimits& limits, int64_t now_us) {
  std::map<JobId, ErrorCode> ends, want;
  for (const JobEnd& end : plan.ends) EXPECT_TRUE(ends.emplace(end.id, end.why).second);
  std::set<JobId> live;
  for (const WaitingJob& job : waiting) {
    const bool late = job.deadline_us != 0 && now_us >= job.deadline_us;
    if (late) want[job.id] = ErrorCode::deadline_exceeded;
    if (job.cancelled) want[job.id] = ErrorCode::cancelled;
    if (!late && !job.cancelled) live.insert(job.id);
  }
  EXPECT_EQ(ends, want);
  for (const JobId id : plan.admitted) EXPECT_EQ(live.erase(id), 1u) << id << " entered twice or had ended";
  const auto running =
      std::ranges::count_if(active, [](const auto& job) { return !job.paused && !job.finishing; });
  if (plan.admitted.empty()) return;
  EXPECT_LE(running + std::ssize(plan.admitted), limits.max_batch_size);
  EXPECT_LE(std::ssize(active) + std::ssize(plan.admitted), limits.max_streams);
}

namespace {

struct RandomLoad {
  std::vector<Request> requests;
  Machine machine;
  int64_t bound = 0;  // steps by which everything must have ended
};

RandomLoad random_load(uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  RandomLoad load;
  ScheduleLimits& limits = load.machine.limits;
  limits.page_size = draw(1, 8);
  limits.max_batch_size = draw(1, 6);
  limits.max_streams = limits.max_batch_size * draw(1, 3);
  limits.prefill_columns = draw(1, 24);
  limits.batch_timeout_us = draw(0, 2) == 0 ? draw(0, 5000) : 0;
  limits.batch_grouping = draw(0, 1) == 0;
  const int64_t count = draw(1, 14);
  int64_t largest = 0, steps = 0;
  for (int64_t i = 0; i < count; ++i) {
    Request request{.name = static_cast<char>('A' + i), .arrival = draw(0, 30), .prompt = draw(1, 40)};
    request.frames = draw(1, 30);
    request.utterances = draw(0, 3) == 0 ? draw(2, 3) : 1;
    request.client = static_cast<uint64_t>(draw(1, 4));
    request.voice = static_cast<uint64_t>(draw(0, 2));
    // The part of a voice is the same for all of its prompts that are long enough.
    if (request.voice != 0)
      request.voice_columns = std::min<int64_t>(request.prompt, 9 * static_cast<int64_t>(request.voice));
    if (draw(0, 9) == 0) request.deadline = draw(1, 200);
    if (draw(0, 9) == 0) request.cancelled = draw(0, 100);
    if (draw(0, 4) == 0) request.paused = draw(0, 60), request.resumed = request.paused + draw(1, 60);
    request.finishing = draw(0, 5);
    largest = std::max(largest, request.prompt + request.frames);
    steps += request.utterances * (request.prompt + request.frames) + 2;
    load.requests.push_back(request);
  }
  const int64_t least = (largest + limits.page_size - 1) / limits.page_size;
  load.machine.pages = least + draw(0, 2) * draw(0, 2 * least);
  // Arrivals, pauses and the wait for company are over by 140. From then on every step computes at least a
  // column or preempts; as many columns again are allowed for what preemption makes them compute twice.
  load.bound = 140 + count * 6 + 2 * steps;
  load.machine.knows_shared_pages = draw(0, 3) != 0;
  return load;
}

TEST(RandomLoads, EveryPlanIsValidAndEveryJobEnds) {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomLoad load = random_load(seed);
    Replay replay(load.requests, load.machine);
    replay.run(load.bound);
    EXPECT_TRUE(replay.all_gone()) << "not all have ended after " << load.bound << " steps";
    for (const Replay::Job& job : replay.jobs()) {
      EXPECT_EQ(job.held.all(), 0) << job.request.name;
      EXPECT_TRUE(job.ended_early || job.spoken == job.request.frames * job.request.utterances)
          << job.request.name;
    }
    if (HasFailure()) return;
  }
}

// The same jobs in another order of the arrays, and once more: the plan is the same.
TEST(RandomLoads, PlansDependOnlyOnTheJobs) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 engine(seed);
    RandomLoad load = random_load(seed);
    const std::vector<std::string> want = replay(load.requests, load.machine);
    std::ranges::shuffle(load.requests, engine);
    EXPECT_EQ(replay(load.requests, load.machine), want) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shoal::runtime
