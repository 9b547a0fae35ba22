#include <gtest/gtest.h>

#include "runtime/schedule/replay_testing.h"

namespace shoal::runtime {
namespace {

using Lines = std::vector<std::string>;

constexpr ScheduleLimits kRoomy = {
    .max_batch_size = 4, .max_streams = 8, .prefill_columns = 16, .page_size = 4, .pages_available = 999};

struct Queued {
  char id;
  uint64_t client = 1, voice = 0;
  int64_t columns = 4;
};

// Waiting jobs in the order of their arrival.
std::vector<WaitingJob> queue(const std::vector<Queued>& jobs) {
  std::vector<WaitingJob> waiting;
  for (const Queued& job : jobs) {
    waiting.push_back({.id = static_cast<JobId>(job.id),
                       .client = job.client,
                       .voice = job.voice,
                       .arrival_us = 10 + std::ssize(waiting),
                       .prompt_columns = job.columns});
  }
  return waiting;
}

std::vector<ActiveJob> speaking(int64_t count, uint64_t client, int64_t pages = 1) {
  std::vector<ActiveJob> active;
  for (int64_t i = 0; i < count; ++i) {
    active.push_back({.id = static_cast<JobId>(1 + i) + 1000 * client,
                      .client = client,
                      .columns = 3,
                      .columns_done = 2,
                      .pages_held = pages,
                      .started = true,
                      .frames = 1});
  }
  return active;
}

std::string admitted(const std::vector<WaitingJob>& waiting, const std::vector<ActiveJob>& active,
                     const ScheduleLimits& limits) {
  const Admission plan = plan_admission(waiting, active, limits, 1000);
  expect_sound(plan, waiting, active, limits, 1000);
  std::string ids;
  for (const JobId id : plan.admitted) ids += static_cast<char>(id);
  return ids;
}

TEST(PlanAdmission, AdmitsTheOldestFirstWhileThereIsRoom) {
  std::vector<WaitingJob> waiting = queue({{'c'}, {'a'}, {'b'}, {'e'}, {'d'}});
  EXPECT_EQ(admitted(waiting, {}, kRoomy), "cabe");
  EXPECT_EQ(admitted(waiting, speaking(3, 9), kRoomy), "c");
  EXPECT_EQ(admitted(waiting, speaking(4, 9), kRoomy), "");
  for (WaitingJob& job : waiting) job.arrival_us = 5;
  EXPECT_EQ(admitted(waiting, {}, kRoomy), "abcd");
}

TEST(PlanAdmission, PausedAndFinishingJobsLeaveTheBatchButNotTheStreams) {
  std::vector<ActiveJob> active = speaking(4, 9);
  active[0].paused = true;
  active[1] = {.id = 77, .client = 9, .finishing = true};
  EXPECT_EQ(admitted(queue({{'a'}, {'b'}, {'c'}}), active, kRoomy), "ab");
  ScheduleLimits limits = kRoomy;
  limits.max_streams = 5;
  EXPECT_EQ(admitted(queue({{'a'}, {'b'}, {'c'}}), active, limits), "a");
}

TEST(PlanAdmission, ClientWithTheFewestActiveJobsIsNext) {
  std::vector<ActiveJob> active = speaking(2, 1);
  EXPECT_EQ(admitted(queue({{'a', 1}, {'b', 1}, {'c', 2}, {'d', 2}}), active, kRoomy), "cd");
  ScheduleLimits limits = kRoomy;
  limits.max_batch_size = 6;
  // 2, 2, then both have two: the older job.
  EXPECT_EQ(admitted(queue({{'a', 1}, {'b', 1}, {'c', 2}, {'d', 2}}), active, limits), "cdab");
}

TEST(PlanAdmission, AHundredJobsOfOneClientDoNotBlockAnother) {
  std::vector<Request> requests;
  for (int i = 0; i < 100; ++i) {
    requests.push_back(
        {.name = static_cast<char>(-100 + i), .prompt = 4, .frames = 10, .client = 1, .voice = 1});
  }
  requests.push_back({.name = 'z', .arrival = 1, .prompt = 4, .frames = 10, .client = 2, .voice = 1});
  Replay run(requests, {.limits = kRoomy});
  run.run();
  // At step 10 the first four are done and z is the first of the next.
  EXPECT_EQ(run.job('z').ended_at, 20);
}

TEST(PlanAdmission, JobsOfTheSameVoiceFollowShortestPromptFirst) {
  const std::vector<WaitingJob> waiting = queue(
      {{'a', 1, 7, 20}, {'b', 1, 8, 4}, {'c', 1, 7, 30}, {'d', 1, 7, 10}, {'e', 1, 0, 1}, {'f', 1, 7, 10}});
  EXPECT_EQ(admitted(waiting, {}, kRoomy), "adfc");
  ScheduleLimits limits = kRoomy;
  limits.max_batch_size = 8;
  EXPECT_EQ(admitted(waiting, {}, limits), "adfcbe");
  limits.batch_grouping = false;
  EXPECT_EQ(admitted(waiting, {}, limits), "abcdef");
}

TEST(PlanAdmission, JobsWithoutAVoiceAreNotGrouped) {
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 20}, {'b', 1, 9, 4}, {'c', 1, 0, 1}}), {}, kRoomy), "abc");
}

TEST(PlanAdmission, AGroupRespectsTheEvenSharesOfClients) {
  // Two clients share four places. Client 2's jobs of the voice follow up to its share, 1's do not exceed
  // theirs.
  const std::vector<WaitingJob> waiting =
      queue({{'a', 1, 7}, {'b', 1, 7}, {'c', 1, 7}, {'d', 1, 7}, {'e', 2, 7}, {'f', 2, 7}, {'g', 2, 7}});
  EXPECT_EQ(admitted(waiting, {}, kRoomy), "abef");
  // Alone, a client takes every place.
  EXPECT_EQ(admitted(queue({{'a', 1, 7}, {'b', 1, 7}, {'c', 1, 7}, {'d', 1, 7}, {'e', 1, 7}}), {}, kRoomy),
            "abcd");
  // One more client that waits for another voice: one place each (four by three), then whose turn it is.
  std::vector<WaitingJob> three = waiting;
  three.push_back({.id = 'h', .client = 3, .voice = 8, .arrival_us = 99, .prompt_columns = 4});
  EXPECT_EQ(admitted(three, {}, kRoomy), "aehb");
}

TEST(PlanAdmission, SharesCountOnlyWhileOthersWait) {
  ScheduleLimits limits = kRoomy;
  limits.max_batch_size = 6;
  // Client 9 is active but does not wait, so client 1 may exceed its three places with the whole group.
  const std::vector<Queued> jobs = {
      {'a', 1, 7, 20}, {'b', 1, 7, 40}, {'c', 1, 7, 30}, {'d', 1, 7, 10}, {'e', 1, 7, 5}};
  EXPECT_EQ(admitted(queue(jobs), speaking(1, 9), limits), "aedcb");
}

TEST(PlanAdmission, AFollowerThatDoesNotFitEndsTheRound) {
  ScheduleLimits limits = kRoomy;
  limits.pages_available = 4;
  EXPECT_EQ(admitted(queue({{'a', 1, 7, 4}, {'b', 1, 7, 40}, {'c', 2, 8, 1}}), {}, limits), "a");
}

TEST(PlanAdmission, AdmissionNeedsPagesBeyondThoseAlreadyPromised) {
  ScheduleLimits limits = kRoomy;
  limits.pages_available = 4;
  // Seven columns and a frame are two pages, eight and a frame three.
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 7}, {'b', 1, 0, 7}, {'c', 1, 0, 1}}), {}, limits), "ab");
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 8}, {'b', 1, 0, 7}, {'c', 1, 0, 1}}), {}, limits),
            "a");  // b ends the round
  // Speaking jobs will want a page each; a prompt the rest of its own and a frame's: 12 + 1 columns less one
  // page.
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 7}, {'b', 1, 0, 7}}), speaking(1, 9), limits), "a");
  std::vector<ActiveJob> prefilling = speaking(1, 9);
  prefilling[0].frames = 0;
  prefilling[0].columns = 12;
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 3}, {'b', 1, 0, 3}}), prefilling, limits), "a");
}

TEST(PlanAdmission, PausedJobsGiveUpTheirPages) {
  ScheduleLimits limits = kRoomy;
  limits.pages_available = 1;
  std::vector<ActiveJob> active = speaking(2, 9, 5);
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 8}}), active, limits), "");
  active[0].paused = true;
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 8}}), active, limits), "a");
  active[0].pages_shared = 3;
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 8}}), active, limits), "");
}

TEST(PlanAdmission, TheFirstJobEntersAnIdleEngineWhateverItNeeds) {
  ScheduleLimits limits = kRoomy;
  limits.pages_available = 1;
  std::vector<ActiveJob> active = speaking(1, 9);
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 8}, {'b'}}), active, limits), "");
  active[0].paused = true;
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 99}, {'b', 1, 0, 1}}), active, limits), "a");
  EXPECT_EQ(admitted(queue({{'a', 1, 0, 99}, {'b', 1, 0, 1}}), {}, limits), "a");
}

TEST(PlanAdmission, ALongPromptIsNotOvertakenForever) {
  // One short request after another, each of which would fit beside the last; the long one needs the whole
  // pool.
  std::vector<Request> requests = {{.name = '~', .arrival = 2, .prompt = 30, .frames = 2, .client = 1}};
  for (int i = 0; i < 60; ++i) {
    requests.push_back(
        {.name = static_cast<char>('!' + i), .arrival = i, .prompt = 3, .frames = 4, .client = 2});
  }
  Replay run(requests, {.limits = kRoomy, .pages = 8});
  run.run();
  EXPECT_LE(run.job('~').ended_at, 12);
  EXPECT_EQ(run.job('~').preemptions, 0);
}

TEST(PlanAdmission, WaitsForMoreJobsUntilAGivenTime) {
  std::vector<WaitingJob> waiting = queue({{'a'}, {'b'}});  // arrived at 10 and 11
  ScheduleLimits limits = kRoomy;
  limits.batch_timeout_us = 50;
  const auto plan = [&](int64_t now_us) { return plan_admission(waiting, {}, limits, now_us); };
  EXPECT_TRUE(plan(12).admitted.empty());
  EXPECT_EQ(plan(12).wake_us, 60);
  EXPECT_EQ(plan(59).wake_us, 60);
  EXPECT_EQ(plan(60).admitted.size(), 2u);  // b, whose time is not over, is the company
  EXPECT_EQ(plan(60).wake_us, 0);
  waiting = queue({{'a'}, {'b'}, {'c'}, {'d'}});
  EXPECT_EQ(plan(12).admitted.size(), 4u);  // full: there is nobody to wait for
  waiting = queue({{'a'}, {'b'}, {'c'}, {'d'}});
  waiting[3].cancelled = true;
  EXPECT_TRUE(plan(12).admitted.empty());  // d is no company
}

TEST(PlanAdmission, EndsExpiredJobsAndWakesForDeadlines) {
  std::vector<WaitingJob> waiting = queue({{'a'}, {'b'}, {'c'}, {'d'}});
  waiting[0].deadline_us = 40;
  waiting[1].deadline_us = 30;
  waiting[2].cancelled = true;
  const std::vector<ActiveJob> active = speaking(4, 9);  // no room
  Admission plan = plan_admission(waiting, active, kRoomy, 20);
  expect_sound(plan, waiting, active, kRoomy, 20);
  EXPECT_EQ(plan.ends.size(), 1u);
  EXPECT_EQ(plan.wake_us, 30);
  plan = plan_admission(waiting, active, kRoomy, 30);
  expect_sound(plan, waiting, active, kRoomy, 30);
  EXPECT_EQ(plan.ends.size(), 2u);
  EXPECT_EQ(plan.wake_us, 40);
  ScheduleLimits limits = kRoomy;
  limits.batch_timeout_us = 25;
  plan = plan_admission(waiting, {}, limits, 20);  // the sooner of 30 and 10 + 25
  EXPECT_EQ(plan.wake_us, 30);
  EXPECT_EQ(plan_admission({}, active, limits, 20).wake_us, 0);
}

}  // namespace
}  // namespace shoal::runtime
