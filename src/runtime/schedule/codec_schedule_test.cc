#include "runtime/schedule/codec_schedule.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kCodecFrameUs = 46440;

CodecJob stream(JobId id, int64_t waiting, int64_t lead_frames) {
  return {.id = id, .waiting_frames = waiting, .started = true, .lead_us = lead_frames * kCodecFrameUs};
}
CodecJob dry_stream(JobId id, int64_t waiting, int64_t lead_frames) {
  CodecJob job = stream(id, waiting, lead_frames);
  job.ran_dry = true;
  return job;
}
CodecJob whole_file(JobId id, int64_t waiting) {
  return {.id = id, .waiting_frames = waiting, .whole = true};
}

std::string plan(const std::vector<CodecJob>& jobs, int64_t max_frames, int64_t worth_a_pass = 1) {
  std::string line;
  for (const CodecPiece& piece : plan_codec(
           jobs,
           {.frame_us = kCodecFrameUs, .max_frames_per_pass = max_frames, .worth_a_pass = worth_a_pass})) {
    line += std::to_string(piece.id) + ":" + std::to_string(piece.frames) + " ";
  }
  return line;
}

TEST(WantedFrames, GrowWithTheLead) {
  const std::map<int64_t, int64_t> wanted = {{-100, 1}, {0, 1},   {1, 1},    {3, 1},  {4, 2},
                                             {7, 2},    {8, 4},   {15, 4},   {16, 8}, {31, 8},
                                             {32, 16},  {33, 16}, {1000, 16}};
  for (const auto& [lead, frames] : wanted) {
    EXPECT_EQ(wanted_frames(stream(1, 99, lead), kCodecFrameUs), frames) << lead;
  }
  CodecJob job = stream(1, 99, 4);
  --job.lead_us;  // a microsecond short of twice two frames
  EXPECT_EQ(wanted_frames(job, kCodecFrameUs), 1);
}

TEST(WantedFrames, ScaleWithTheSpeed) {
  CodecJob job = stream(1, 99, 8);
  job.speed = 2;  // eight frames' time is sixteen frames
  EXPECT_EQ(wanted_frames(job, kCodecFrameUs), 8);
  job.speed = 0.25;
  EXPECT_EQ(wanted_frames(job, kCodecFrameUs), 1);
}

TEST(WantedFrames, AreOneForTheFirstSoundAndSixteenForWholeFiles) {
  CodecJob job = stream(1, 99, 1000);
  job.started = false;
  EXPECT_EQ(wanted_frames(job, kCodecFrameUs), 1);
  EXPECT_EQ(wanted_frames(whole_file(1, 5), kCodecFrameUs), 16);
}

TEST(PlanCodec, DecodesDueStreamsWithTheLeastLeadFirst) {
  const std::vector<CodecJob> jobs = {stream(1, 3, 8), stream(2, 4, 8), stream(3, 1, -2), stream(4, 0, -9),
                                      stream(5, 1, -2)};
  EXPECT_EQ(plan(jobs, 99), "3:1 5:1 2:4 ");
}

TEST(PlanCodec, EndedJobsAreDueWithAnyRemainingFrames) {
  CodecJob late = stream(1, 1, 1000), nothing = stream(2, 0, 0), file = whole_file(3, 2);
  late.ended = nothing.ended = file.ended = true;
  EXPECT_EQ(plan({late, nothing, file}, 99), "1:1 3:2 ");
}

TEST(PlanCodec, APassStaysWithinItsLimit) {
  EXPECT_EQ(plan({stream(1, 20, 0), stream(2, 5, 1)}, 16), "1:16 ");
  EXPECT_EQ(plan({stream(1, 12, 0), stream(2, 5, 1), stream(3, 5, 2)}, 16), "1:12 2:4 ");
}

TEST(PlanCodec, WholeFilesComeLastButKeepAnEighthOfThePass) {
  EXPECT_EQ(plan({whole_file(1, 16), stream(2, 6, 0)}, 32), "2:6 1:16 ");
  EXPECT_EQ(plan({whole_file(1, 40), stream(2, 40, -50)}, 32), "2:28 1:4 ");
  EXPECT_EQ(plan({whole_file(1, 40), whole_file(2, 50), stream(3, 40, -50)}, 2), "3:1 2:1 ");
  EXPECT_EQ(plan({whole_file(1, 15), stream(2, 40, -50)}, 32), "2:32 ");  // not due
  CodecJob rest = whole_file(1, 1);
  rest.ended = true;
  EXPECT_EQ(plan({rest, stream(2, 40, -50)}, 32), "2:31 1:1 ");
  EXPECT_EQ(plan({whole_file(1, 40), stream(2, 40, -50)}, 1), "2:1 ");  // too small to share
}

TEST(PlanCodec, StreamsThatAllRanDryWaitForWhatIsWorthAPass) {
  EXPECT_EQ(plan({dry_stream(1, 3, -1)}, 99, 4), "");
  EXPECT_EQ(plan({dry_stream(1, 3, 1)}, 99, 4), "");
  EXPECT_EQ(plan({dry_stream(1, 4, -1)}, 99, 4), "1:4 ");
  EXPECT_EQ(plan({dry_stream(1, 3, 1), dry_stream(2, 1, -2)}, 99, 4), "2:1 1:3 ");
  EXPECT_EQ(plan({dry_stream(1, 1, -1), stream(2, 9, 1000)}, 99, 4), "");  // the second is not due
}

TEST(PlanCodec, NobodyElseWaitsForThat) {
  CodecJob first = stream(2, 1, 0), last = dry_stream(2, 1, -5);
  first.started = false;
  last.ended = true;
  for (const CodecJob& other : {first, last, stream(2, 1, -5)}) {
    EXPECT_EQ(plan({other}, 99, 4), "2:1 ");
    EXPECT_EQ(plan({dry_stream(1, 1, -9), other}, 99, 4), "1:1 2:1 ");
  }
  EXPECT_EQ(plan({dry_stream(1, 1, -1), whole_file(2, 16)}, 99, 4), "1:1 2:16 ");
}

TEST(PlanCodec, BrokenPromisesAreOurFault) {
  EXPECT_THROW(plan({}, 0), Error);
  EXPECT_THROW(plan_codec(std::vector{stream(1, 1, 0)}, {.frame_us = 0}), Error);
}

TEST(PlanCodec, RandomPassesKeepTheRules) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    std::vector<CodecJob> jobs;
    for (int64_t i = draw(0, 12); i > 0; --i) {
      CodecJob job = draw(0, 3) == 0 ? whole_file(0, draw(0, 40)) : stream(0, draw(0, 20), draw(-5, 40));
      job.id = static_cast<JobId>(i);
      job.ended = draw(0, 3) == 0;
      job.ran_dry = draw(0, 3) > 0;
      jobs.push_back(job);
    }
    const CodecLimits limits = {
        .frame_us = kCodecFrameUs, .max_frames_per_pass = draw(1, 64), .worth_a_pass = draw(1, 8)};
    const std::vector<CodecPiece> pieces = plan_codec(jobs, limits);
    bool somebody_hurries = false;

    int64_t total = 0, file_frames = 0, due_frames = 0, due_file_frames = 0;
    std::map<JobId, int64_t> given;
    for (const CodecPiece& piece : pieces) {
      EXPECT_GE(piece.frames, 1);
      EXPECT_TRUE(given.emplace(piece.id, piece.frames).second) << "twice " << piece.id;
      total += piece.frames;
    }
    EXPECT_LE(total, limits.max_frames_per_pass);
    int64_t least_lead_of_unserved = INT64_MAX, most_lead_of_served = INT64_MIN;
    for (const CodecJob& job : jobs) {
      const int64_t frames = given.contains(job.id) ? given[job.id] : 0;
      const bool due =
          job.waiting_frames > 0 && (job.ended || job.waiting_frames >= wanted_frames(job, kCodecFrameUs));
      EXPECT_LE(frames, due ? job.waiting_frames : 0) << job.id;
      if (!due) continue;
      due_frames += job.waiting_frames;
      somebody_hurries |= job.whole || job.ended || !job.ran_dry;
      if (job.whole) file_frames += frames, due_file_frames += job.waiting_frames;
      if (job.whole) continue;
      if (frames < job.waiting_frames) least_lead_of_unserved = std::min(least_lead_of_unserved, job.lead_us);
      if (frames > 0) most_lead_of_served = std::max(most_lead_of_served, job.lead_us);
    }
    if (!somebody_hurries && due_frames < limits.worth_a_pass) {
      EXPECT_EQ(total, 0) << "not worth a pass";
      continue;
    }
    EXPECT_LE(most_lead_of_served, least_lead_of_unserved);
    EXPECT_EQ(total, std::min(due_frames, limits.max_frames_per_pass))
        << "no room is left while something is due";
    const int64_t share =
        limits.max_frames_per_pass < 2 ? 0 : std::max<int64_t>(1, limits.max_frames_per_pass / 8);
    EXPECT_GE(file_frames, std::min(share, due_file_frames));
    EXPECT_TRUE(least_lead_of_unserved == INT64_MAX || file_frames <= share);
    if (HasFailure()) return;
  }
}

// One frame a tick for every listener, a codec that decodes `per_pass` frames a tick.
struct Listening {
  int64_t underruns = 0;
  int64_t file_frames = 0;
  int64_t largest_piece = 0;
};
Listening listen(int64_t streams, int64_t per_pass, int64_t ticks) {
  std::vector<CodecJob> jobs;
  for (int64_t i = 0; i < streams; ++i) jobs.push_back({.id = static_cast<JobId>(i)});
  jobs.push_back({.id = 1000, .whole = true});
  Listening result;
  for (int64_t tick = 0; tick < ticks; ++tick) {
    // Generation is twice as fast as real time until a listener has plenty.
    for (CodecJob& job : jobs) job.waiting_frames += job.lead_us < 40 * kCodecFrameUs ? 2 : 0;
    for (const CodecPiece& piece :
         plan_codec(jobs, {.frame_us = kCodecFrameUs, .max_frames_per_pass = per_pass})) {
      CodecJob& job = *std::ranges::find(jobs, piece.id, &CodecJob::id);
      job.waiting_frames -= piece.frames;
      job.started = true;
      if (job.whole) result.file_frames += piece.frames;
      if (!job.whole) job.lead_us += piece.frames * kCodecFrameUs;
      if (!job.whole) result.largest_piece = std::max(result.largest_piece, piece.frames);
    }
    for (CodecJob& job : jobs) {
      if (job.whole || !job.started) continue;
      job.lead_us -= kCodecFrameUs;
      if (job.lead_us < 0) ++result.underruns;
    }
  }
  return result;
}

TEST(PlanCodec, ListenersDoNotRunDryWhileAWholeFileIsMade) {
  const Listening result = listen(8, 24, 400);
  EXPECT_EQ(result.underruns, 0);
  EXPECT_GE(result.largest_piece, 16);
  EXPECT_GE(result.file_frames, 800 - 2 * 16);  // of 800 that were made for it, less than two pieces wait
}

TEST(PlanCodec, WholeFilesProgressWhenListenersUseAllTheyCan) {
  const Listening result = listen(40, 24, 400);
  EXPECT_GT(result.underruns, 0);
  // Three frames of a pass are kept for it, more than it is given to make.
  EXPECT_GE(result.file_frames, 2 * 400 - 16 - 2);
}

// One listener of a CPU whose threads make a frame in 24 ms, then decode what is due in 16 ms and 10 ms a
// frame: 50 ms of work for 46 ms of sound if every frame is decoded alone. Returns how often he ran dry.
int64_t times_dry(int64_t worth_a_pass, int64_t frames) {
  CodecJob job{.id = 1};
  int64_t now_us = 0, first_us = 0, heard_us = 0, dry = 0;
  for (int64_t frame = 0; frame < frames; ++frame) {
    now_us += 24'000;
    ++job.waiting_frames;
    job.lead_us = job.started ? heard_us - (now_us - first_us) : 0;
    for (const CodecPiece& piece :
         plan_codec(std::vector{job},
                    {.frame_us = kCodecFrameUs, .max_frames_per_pass = 16, .worth_a_pass = worth_a_pass})) {
      now_us += 16'000 + 10'000 * piece.frames;
      job.waiting_frames -= piece.frames;
      if (!job.started) first_us = now_us;
      if (job.started && now_us - first_us > heard_us) job.ran_dry = true, ++dry;
      job.started = true;
      heard_us += piece.frames * kCodecFrameUs;
    }
  }
  return dry;
}

TEST(PlanCodec, SlowMachinesCatchUpByPassesThatAreWorthIt) {
  EXPECT_GT(times_dry(1, 200), 150);
  EXPECT_LT(times_dry(4, 200), 10);
  EXPECT_LT(times_dry(8, 200), 10);
}

TEST(PlanCodec, OnlyUrgentLeavesOutStreamsWithSoundAndWholeFiles) {
  CodecJob first = stream(4, 1, 0);
  first.started = false;
  CodecJob ended = stream(5, 1, 9);
  ended.ended = true;
  std::vector<CodecJob> jobs = {stream(1, 9, 100), stream(2, 9, 2), stream(3, 9, -1), first, ended,
                                whole_file(6, 99)};
  const auto planned = [&](bool only_urgent) {
    std::vector<JobId> ids;
    for (const CodecPiece& piece : plan_codec(
             jobs, {.frame_us = kCodecFrameUs, .max_frames_per_pass = 200, .only_urgent = only_urgent}))
      ids.push_back(piece.id);
    std::ranges::sort(ids);
    return ids;
  };
  EXPECT_EQ(planned(true), (std::vector<JobId>{2, 3, 4}));
  EXPECT_EQ(planned(false), (std::vector<JobId>{2, 3, 4, 5, 6}));  // 1 waits for more frames
  jobs[1].lead_us = kLittleLeadUs;
  EXPECT_EQ(planned(true), (std::vector<JobId>{3, 4}));
}

CodecJob first_sound(JobId id) {
  CodecJob job = stream(id, 1, 0);
  job.started = false;
  return job;
}

TEST(UrgentPasses, AreEverySecondWhileAFirstSoundIsDueAmongFewJobs) {
  std::vector<CodecJob> jobs = {stream(2, 8, 30), first_sound(1)};
  UrgentPasses passes;
  int64_t now = 1;
  const auto next = [&] { return passes.next(false, jobs, ++now); };
  EXPECT_TRUE(next());
  EXPECT_FALSE(next());  // the others' turn
  EXPECT_TRUE(next());
  jobs.back().started = true;  // has been heard
  EXPECT_FALSE(next());
  EXPECT_FALSE(next());
  jobs.back() = first_sound(1);
  jobs.back().waiting_frames = 0;
  EXPECT_FALSE(next());
  jobs.back() = whole_file(1, 20);
  EXPECT_FALSE(next());
  jobs.back() = first_sound(1);
  while (jobs.size() < UrgentPasses::kMostJobs) jobs.push_back(stream(100, 0, 4));
  EXPECT_TRUE(next());
  EXPECT_FALSE(next());
  jobs.push_back(stream(100, 0, 4));
  EXPECT_FALSE(next());
  EXPECT_EQ(passes.ends_us(), 0);
}

TEST(UrgentPasses, AreAllBesideLongPromptsButNotForLong) {
  constexpr int64_t kMost = UrgentPasses::kMostHeldUs;
  UrgentPasses passes;
  const auto next = [&](bool held, int64_t now) { return passes.next(held, {}, now); };
  EXPECT_FALSE(next(false, 1));
  EXPECT_EQ(passes.ends_us(), 0);
  EXPECT_TRUE(next(true, 10));
  EXPECT_EQ(passes.ends_us(), 10 + kMost);
  EXPECT_TRUE(next(true, 9 + kMost));
  EXPECT_FALSE(next(true, 10 + kMost));         // one pass of everybody
  EXPECT_EQ(passes.ends_us(), 10 + 2 * kMost);  // if nobody was due: again
  EXPECT_TRUE(next(true, 11 + kMost));
  EXPECT_TRUE(next(true, 9 + 2 * kMost));
  EXPECT_FALSE(next(true, 10 + 2 * kMost));
  EXPECT_FALSE(next(false, 11 + 2 * kMost));
  EXPECT_EQ(passes.ends_us(), 0);
  EXPECT_TRUE(next(true, 9 + 3 * kMost));
  EXPECT_EQ(passes.ends_us(), 9 + 4 * kMost);  // from the beginning
}

// First sounds that are due all the time do not take the pass that the others get while they are held.
TEST(UrgentPasses, LeaveOneToTheOthersEach40MsOfAHold) {
  const std::vector<CodecJob> jobs = {stream(2, 8, 30), first_sound(1)};
  for (const int64_t first : {1, 2, 3}) {  // passes before the hold
    UrgentPasses passes;
    int64_t now = 1, for_everybody = 0;
    for (int64_t i = 0; i < first; ++i) passes.next(false, jobs, ++now);
    const int64_t begin = now;
    for (; now <= begin + 10 * UrgentPasses::kMostHeldUs; now += 1000)
      for_everybody += !passes.next(true, jobs, now);
    EXPECT_EQ(for_everybody, 10);
  }
}

TEST(UrgentPasses, LeaveTheOthersTheirTurnWhereHoldsComeAndGo) {
  const std::vector<CodecJob> jobs = {stream(2, 8, 30), first_sound(1)};
  UrgentPasses passes;
  int for_everybody = 0;
  for (int i = 1; i <= 100; ++i) for_everybody += !passes.next(i % 2 != 0, jobs, 5000 * i);
  EXPECT_EQ(for_everybody, 50);
}

}  // namespace
}  // namespace shoal::runtime
