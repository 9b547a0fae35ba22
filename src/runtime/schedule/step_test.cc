#include <gtest/gtest.h>

#include "runtime/schedule/replay_testing.h"

namespace shoal::runtime {
namespace {

using Lines = std::vector<std::string>;

Machine machine(ScheduleLimits limits, int64_t pages = 1000) {
  if (limits.max_streams == 1) limits.max_streams = 16;
  return {.limits = limits, .pages = pages};
}
constexpr ScheduleLimits kRoomyStep = {.max_batch_size = 8, .prefill_columns = 4, .page_size = 4};

// A job with `pages` pages of four columns, all full, so that its next column needs another page.
ActiveJob speaking(char id, int64_t arrival_us, int64_t pages, int64_t lead_us = 0) {
  return {.id = static_cast<JobId>(id),
          .arrival_us = arrival_us,
          .columns = 4 * pages + 1,
          .columns_done = 4 * pages,
          .pages_held = pages,
          .started = true,
          .frames = 3,
          .lead_us = lead_us};
}

ActiveJob prompt(char id, int64_t arrival_us, int64_t pages, int64_t missing) {
  return {.id = static_cast<JobId>(id),
          .arrival_us = arrival_us,
          .columns = 4 * pages + missing,
          .columns_done = 4 * pages,
          .pages_held = pages,
          .started = true};
}

ActiveJob paused(ActiveJob job) {
  job.paused = true;
  return job;
}

std::string plan(const std::vector<ActiveJob>& active, const ScheduleLimits& limits, int64_t now_us = 0) {
  const StepPlan planned = plan_step(active, limits, now_us);
  expect_sound(planned, active, limits, now_us);
  return show(planned);
}

TEST(PlanStep, ALongPromptIsSplitAndNeverStallsSpeakingJobs) {
  EXPECT_EQ(replay({{.name = 'a', .prompt = 1, .frames = 5}, {.name = 'b', .prompt = 9, .frames = 2}},
                   machine(kRoomyStep)),
            (Lines{"a1* b3", "a1* b4", "a1* b2*", "a1* b1*", "a1*"}));
}

TEST(PlanStep, PromptsGoOldestFirst) {
  EXPECT_EQ(replay({{.name = 'b', .arrival = 1, .prompt = 3},
                    {.name = 'a', .prompt = 6},
                    {.name = 'c', .arrival = 1, .prompt = 2}},
                   machine(kRoomyStep)),
            (Lines{"a4", "a2* b2", "b1* c2*"}));
}

TEST(PlanStep, SpeakingColumnsDoNotUseThePrefillBudget) {
  std::vector<ActiveJob> active = {speaking('a', 1, 1), speaking('b', 2, 1), prompt('c', 3, 0, 9)};
  EXPECT_EQ(plan(active, {.max_batch_size = 8, .prefill_columns = 1, .page_size = 4, .pages_available = 99}),
            "a1* b1* c1 ");
}

TEST(PlanStep, UtterancesFollowOneAnother) {
  EXPECT_EQ(replay({{.name = 'a', .prompt = 5, .frames = 2, .utterances = 2}}, machine(kRoomyStep)),
            (Lines{"a4", "a1*", "a1*", "a4", "a1*", "a1*"}));
}

TEST(PlanStep, DeadlinesEndJobsWhereverTheyAre) {
  const std::vector<Request> requests = {
      {.name = 'a', .prompt = 1, .frames = 9, .deadline = 2},
      {.name = 'b', .prompt = 9, .frames = 9, .deadline = 1},
      {.name = 'c', .prompt = 1, .frames = 2, .deadline = 3},   // just in time
      {.name = 'd', .prompt = 1, .frames = 2, .deadline = 1}};  // never enters
  EXPECT_EQ(replay(requests, machine({.max_batch_size = 3, .prefill_columns = 4, .page_size = 4})),
            (Lines{"a1* b3", "d! b! a1* c1*", "a! c1*"}));
}

TEST(PlanStep, CancelledJobsEndPausedOrNot) {
  const std::vector<Request> requests = {
      {.name = 'a', .frames = 9, .cancelled = 2},
      {.name = 'b', .frames = 9, .cancelled = 3, .paused = 1, .resumed = 9},
      {.name = 'c', .frames = 9, .cancelled = 0}};
  EXPECT_EQ(replay(requests, machine(kRoomyStep)), (Lines{"c! a1* b1*", "a1*", "a!", "b!"}));
}

TEST(PlanStep, CancellationTakesPrecedenceOverTheDeadlineAndFinishingJobsAreKept) {
  ActiveJob both = speaking('a', 1, 1),
            finishing = {.id = 'b', .deadline_us = 5, .cancelled = true, .finishing = true};
  both.cancelled = true;
  both.deadline_us = 5;
  const StepPlan planned = plan_step(std::vector{both, finishing}, {}, 5);
  ASSERT_EQ(planned.ends.size(), 1u);
  EXPECT_EQ(planned.ends[0].why, ErrorCode::cancelled);
}

TEST(PlanStep, PausedJobsKeepTheirPagesAndResumeWhereTheyWere) {
  EXPECT_EQ(
      replay({{.name = 'a', .prompt = 6, .frames = 3, .paused = 1, .resumed = 3}, {.name = 'b', .frames = 5}},
             machine(kRoomyStep)),
      (Lines{"a4", "b1*", "b1*", "a2* b1*", "a1* b1*", "a1* b1*"}));
}

TEST(PlanStep, PromptOfTheSameVoiceWaitsForTheOlderOneThenFindsItsPages) {
  const Request a = {.name = 'a', .prompt = 10, .frames = 3, .voice_columns = 8, .voice = 7};
  Request b = a, c = a;
  b.name = 'b', c.name = 'c';
  Replay run({a, b, c}, machine(kRoomyStep));
  EXPECT_EQ(run.run(), (Lines{"a4", "a4", "a2*", "a1* b2* c2*", "a1* b1* c1*", "b1* c1*"}));
  EXPECT_EQ(run.job('b').computed, 10 - 8 + 2);
}

TEST(PlanStep, OtherVoicesAndNoVoiceDoNotWait) {
  for (const uint64_t voice : {uint64_t{0}, uint64_t{8}}) {
    const Request a = {.name = 'a', .prompt = 6, .voice_columns = 4, .voice = voice == 0 ? 0u : 7u};
    const Request b = {.name = 'b', .prompt = 2, .voice = voice};
    EXPECT_EQ(replay({a, b}, machine(kRoomyStep)), (Lines{"a4", "a2* b2*"}));
  }
}

TEST(PlanStep, PausedPromptIsNotWaitedFor) {
  const Request a = {.name = 'a', .prompt = 8, .voice_columns = 8, .voice = 7, .paused = 1, .resumed = 9};
  const Request b = {.name = 'b', .arrival = 1, .prompt = 8, .voice_columns = 8, .voice = 7};
  const Request speaker = {.name = 's', .prompt = 1, .frames = 6};
  // b finds the page that a computed before its pause.
  EXPECT_EQ(replay({a, b, speaker}, machine(kRoomyStep)),
            (Lines{"a4", "s1* b3", "s1* b1*", "s1*", "s1*", "s1*", "s1*", "", "", "a4*"}));
}

TEST(PlanStep, PromptThatHasStartedWaitsForNoOther) {
  ActiveJob a = prompt('a', 1, 1, 3), b = prompt('b', 2, 1, 3);
  a.voice = b.voice = 7;
  ScheduleLimits limits = {.max_batch_size = 8, .prefill_columns = 8, .page_size = 4, .pages_available = 99};
  EXPECT_EQ(plan({a, b}, limits), "a3* b3* ");
  b.started = false;
  EXPECT_EQ(plan({a, b}, limits), "a3* ");
}

TEST(PlanStep, ALaterUtteranceOfASpeakingVoiceBlocksNobody) {
  const Request a = {.name = 'a', .prompt = 8, .frames = 9, .voice_columns = 4, .voice = 7};
  const Request b = {.name = 'b', .prompt = 8, .frames = 1, .utterances = 3, .voice_columns = 4, .voice = 7};
  const Request c = {.name = 'c', .arrival = 4, .prompt = 8, .frames = 1, .voice_columns = 4, .voice = 7};
  // b is in a prompt in every step, but what a has is there to be found.
  Replay run({a, b, c}, machine({.max_batch_size = 8, .prefill_columns = 8, .page_size = 4}));
  run.run();
  EXPECT_EQ(run.job('c').ended_at, 5);
}

TEST(PlanStep, LeastLeadGoesFirstWhenMoreAreReadyThanFit) {
  const std::vector<ActiveJob> active = {speaking('a', 1, 1, 900), speaking('b', 2, 1, 200),
                                         speaking('c', 3, 1, -50), speaking('d', 4, 1, 200)};
  ScheduleLimits limits = {.max_batch_size = 2, .prefill_columns = 4, .page_size = 4, .pages_available = 99};
  EXPECT_EQ(plan(active, limits), "c1* b1* ");
  limits.max_batch_size = 3;
  EXPECT_EQ(plan(active, limits), "c1* b1* d1* ");
  limits.max_batch_size = 4;
  EXPECT_EQ(plan(active, limits), "a1* b1* c1* d1* ");
}

TEST(PlanStep, TheLastColumnOfAPromptWaitsForASlotInTheBatch) {
  const ScheduleLimits limits = {
      .max_batch_size = 1, .prefill_columns = 9, .page_size = 4, .pages_available = 99};
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 0, 6)}, limits), "a1* b5 ");
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 1, 1)}, limits), "a1* ");
}

TEST(PlanStep, ResumedJobsTakeTurnsBeyondTheBatchByTheirLead) {
  // a pauses, b enters in its place, a resumes: two are ready, one fits. A step takes a third of a frame's
  // time.
  const Lines lines =
      replay({{.name = 'a', .frames = 6, .paused = 2, .resumed = 4}, {.name = 'b', .frames = 5}},
             machine({.max_batch_size = 1, .prefill_columns = 4, .page_size = 4}));
  EXPECT_EQ(lines, (Lines{"a1*", "a1*", "b1*", "b1*", "a1*", "b1*", "a1*", "b1*", "a1*", "b1*", "a1*"}));
}

constexpr ScheduleLimits kTight = {
    .max_batch_size = 8, .prefill_columns = 8, .page_size = 4, .pages_available = 0};

TEST(PlanStep, PausedJobsArePreemptedFirstThenPromptsThenSpeakingOnesTheYoungestFirst) {
  const ActiveJob a = speaking('a', 1, 3), b = speaking('b', 2, 1), c = speaking('c', 3, 1),
                  d = prompt('d', 4, 1, 9), e = prompt('e', 5, 1, 9), f = paused(prompt('f', 0, 1, 9)),
                  g = paused(speaking('g', 6, 1));
  // a, b and c need a page each.
  EXPECT_EQ(plan({a, b, c, d, e, f, g}, kTight), "g~ f~ e~ a1* b1* c1* ");
  EXPECT_EQ(plan({a, b, c, d, e, g}, kTight), "g~ e~ d~ a1* b1* c1* ");
  EXPECT_EQ(plan({a, b, c, d}, kTight), "d~ c~ a1* b1* ");
  EXPECT_EQ(plan({a, b, c}, kTight), "c~ a1* ");
}

TEST(PlanStep, OnlyYoungerJobsArePreemptedAndTheOldestNever) {
  // The youngest that finds nobody younger waits; it does not lose what it has.
  EXPECT_EQ(plan({prompt('a', 1, 2, 1), speaking('b', 2, 1)}, kTight), "b~ a1* ");
  EXPECT_EQ(plan({speaking('a', 1, 2), prompt('b', 2, 1, 3), speaking('c', 3, 1)},
                 {.max_batch_size = 8, .prefill_columns = 8, .page_size = 4, .pages_available = 1}),
            "a1* ");
}

TEST(PlanStep, TheOldestPromptPreemptsForItsStep) {
  const ActiveJob a = prompt('a', 1, 0, 20), b = speaking('b', 2, 1), c = speaking('c', 3, 1),
                  d = prompt('d', 4, 1, 5);
  EXPECT_EQ(plan({a, b, c, d}, kTight), "d~ c~ a8 ");
  EXPECT_EQ(plan({a, d}, kTight), "d~ a4 ");  // all there is
}

TEST(PlanStep, PreemptionDoesNotFreeSharedPages) {
  ActiveJob b = prompt('b', 2, 3, 9), c = prompt('c', 3, 3, 9);
  c.pages_shared = 3;
  b.pages_shared = 2;
  EXPECT_EQ(plan({speaking('a', 1, 1), b, c}, kTight), "c~ b~ a1* ");
}

TEST(PlanStep, PagesOfAnEndedJobAreFreeAtOnce) {
  ActiveJob b = speaking('b', 2, 1);
  b.cancelled = true;
  EXPECT_EQ(plan({speaking('a', 1, 1), b, speaking('c', 3, 1)}, kTight), "b! a1* ");
}

TEST(PlanStep, APreemptedJobRecomputesItsColumnsAndContinues) {
  Replay run({{.name = 'a', .prompt = 4, .frames = 13}, {.name = 'b', .prompt = 4, .frames = 8}},
             machine(kTight, 5));
  // The fifth page is a's at its sixth frame, so b waits; at the tenth a needs one of b's.
  EXPECT_EQ(run.run(), (Lines{"a4* b4*", "a1* b1*", "a1* b1*", "a1* b1*", "a1* b1*", "a1*", "a1*", "a1*",
                              "a1*", "b~ a1*", "a1*", "a1*", "a1*", "b8", "b1*", "b1*", "b1*"}));
  EXPECT_EQ(run.job('b').preemptions, 1);
  EXPECT_EQ(run.job('b').spoken, 8);
  EXPECT_EQ(run.job('a').preemptions, 0);
}

TEST(PlanStep, APromptStartsOnlyIfItWouldNotSoonBePreempted) {
  ScheduleLimits limits = kTight;
  limits.pages_available = 5;
  // a takes one and may want one more; b wants two for its six columns and a frame, c two.
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 0, 6), prompt('c', 3, 0, 4)}, limits), "a1* b6* ");
  limits.pages_available = 6;
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 0, 6), prompt('c', 3, 0, 4)}, limits), "a1* b6* c2 ");
}

TEST(PlanStep, ThePageOfTheNextFrameIsReservedForTheOldestPrompt) {
  ScheduleLimits limits = {.max_batch_size = 8, .prefill_columns = 99, .page_size = 4, .pages_available = 4};
  EXPECT_EQ(plan({prompt('a', 1, 0, 8), prompt('b', 2, 0, 4)}, limits), "a8* ");
  EXPECT_EQ(plan({prompt('a', 1, 0, 7), prompt('b', 2, 0, 4)}, limits), "a7* b4* ");
}

TEST(PlanStep, ShortPromptsDoNotOvertakeALongOne) {
  ScheduleLimits limits = kTight;
  limits.pages_available = 5;
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 0, 40), prompt('c', 3, 0, 1)}, limits), "a1* ");
}

TEST(PlanStep, PausedJobsArePreemptedForPrompts) {
  ScheduleLimits limits = kTight;
  limits.pages_available = 2;
  EXPECT_EQ(plan({speaking('a', 1, 1), prompt('b', 2, 0, 6), paused(speaking('c', 0, 2))}, limits),
            "c~ a1* b6* ");
}

TEST(PlanStep, BrokenPromisesAreOurFault) {
  ActiveJob done = speaking('a', 1, 1);
  done.columns_done = done.columns;
  EXPECT_THROW(plan_step(std::vector{done}, kTight, 0), Error);
  EXPECT_THROW(plan_step({}, {.page_size = 0}, 0), Error);
}

}  // namespace
}  // namespace shoal::runtime
