#include "bench/engine/load_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/engine/voices.h"

namespace shoal::bench {
namespace {

// A tiny model with random weights: it hardly ever ends before its frames are spent.
EngineConfig tiny() {
  EngineConfig config;
  config.model = SHOAL_SOURCE_DIR "/tests/data/fish/set_a";
  config.threads = 1;
  config.cache_dir = "none";
  config.with_encoder = false;
  config.kv_memory_mb = 64;
  return config;
}

class LoadLevel : public testing::Test {
 protected:
  void start(EngineConfig config) {
    engine_ = std::make_unique<Engine>(std::move(config));
    engine_->start();
  }
  static Workload workload(int64_t min_frames, int64_t max_frames) {
    return Workload({.min_frames = min_frames, .max_frames = max_frames, .seed = 3}, {});
  }

  std::unique_ptr<Engine> engine_;
};

void expect_sum(const RequestCounts& counts) {
  EXPECT_EQ(counts.submitted,
            counts.completed + counts.refused + counts.failed + counts.expired + counts.cancelled);
  int64_t errors = 0;
  for (const auto& [name, count] : counts.errors) errors += count;
  EXPECT_EQ(errors, counts.submitted - counts.completed);
}

TEST_F(LoadLevel, ClosedLoopSpeaksEveryRequestOnce) {
  start(tiny());
  const Statistics before = engine_->statistics();
  const LevelFigures figures = run_level(*engine_, workload(2, 6), {.users = 3, .requests = 12});
  const Statistics after = engine_->statistics();
  expect_sum(figures.requests);
  EXPECT_EQ(figures.requests.submitted, 12);
  EXPECT_EQ(figures.requests.completed, 12);
  EXPECT_EQ(after.submitted - before.submitted, 12u);
  EXPECT_EQ(figures.latency_s.count, 12);
  EXPECT_EQ(figures.queue_wait_s.count, 12);
  EXPECT_GE(figures.frames, 2 * 12 - 12);  // except frames that the model itself cut
  EXPECT_LE(figures.frames, 6 * 12);
  EXPECT_GT(figures.audio_s, 0);
  EXPECT_EQ(figures.prompt_columns, figures.cached_columns + figures.computed_columns);
  EXPECT_EQ(figures.never_dry() + figures.streams_with_underruns, 12);
  // At most three at a time; the busy part is the time with three.
  EXPECT_LE(figures.whole.mean_batch, 3);
  EXPECT_GE(figures.busy.mean_batch, figures.whole.mean_batch * 0.9);
  EXPECT_LE(figures.busy.seconds, figures.elapsed_s);
  EXPECT_LE(figures.first_audio_s.p50, figures.latency_s.max);
  EXPECT_GT(figures.kv.pages, 0);
  EXPECT_FALSE(figures.memory.empty());
}

TEST_F(LoadLevel, ConcurrencyChangesNoSound) {
  start(tiny());
  const LevelFigures alone = run_level(*engine_, workload(2, 9), {.users = 1, .requests = 8});
  const LevelFigures together = run_level(*engine_, workload(2, 9), {.users = 8, .requests = 8});
  EXPECT_EQ(alone.frames, together.frames);
  EXPECT_EQ(alone.audio_s, together.audio_s);
  EXPECT_EQ(alone.prompt_columns, together.prompt_columns);
}

TEST_F(LoadLevel, ClosedLoopEndsWithItsTime) {
  start(tiny());
  const LevelFigures figures = run_level(*engine_, workload(2, 2), {.users = 2, .duration_s = 0.5});
  expect_sum(figures.requests);
  EXPECT_GE(figures.requests.completed, 2);
  EXPECT_EQ(figures.requests.completed, figures.requests.submitted);
  EXPECT_GE(figures.elapsed_s, 0.5);
}

TEST_F(LoadLevel, ListenersInRealTimeTakeAsLongAsTheSound) {
  start(tiny());
  const LevelFigures figures =
      run_level(*engine_, workload(24, 24), {.users = 2, .requests = 2, .listening = Listening::real_time});
  expect_sum(figures.requests);
  ASSERT_EQ(figures.requests.completed, 2);
  // Two play side by side, so half of all sound is the least that either may have lasted on average.
  EXPECT_GE(figures.elapsed_s, figures.audio_s / 2);
  EXPECT_LE(figures.latency_s.p50, figures.elapsed_s);
}

TEST_F(LoadLevel, OpenLoopCountsRequestsThatAFullQueueRefuses) {
  EngineConfig config = tiny();
  config.max_batch_size = 1;
  config.max_streams = 1;
  config.max_queue = 1;
  start(config);
  // Arrivals come a hundred times faster than anything can be spoken.
  const LevelFigures figures = run_level(*engine_, workload(40, 40), {.rate_per_s = 5000, .requests = 60});
  expect_sum(figures.requests);
  EXPECT_EQ(figures.requests.submitted, 60);
  EXPECT_GE(figures.requests.completed, 1);
  EXPECT_GE(figures.requests.refused, 1);
  EXPECT_EQ(figures.requests.errors.at("resource_exhausted"), figures.requests.refused);
  ASSERT_TRUE(figures.first_error);
  EXPECT_EQ(figures.first_error->code(), ErrorCode::resource_exhausted);
}

TEST_F(LoadLevel, OpenLoopArrivesWhetherOrNotOthersHaveEnded) {
  start(tiny());
  const LevelFigures figures = run_level(*engine_, workload(4, 4), {.rate_per_s = 200, .duration_s = 0.2});
  expect_sum(figures.requests);
  EXPECT_GT(figures.requests.submitted, 10);  // 40 are expected
  EXPECT_EQ(figures.requests.completed, figures.requests.submitted);
}

TEST_F(LoadLevel, RequestsThatCannotBeSpokenAreCountedAsFailed) {
  start(tiny());
  const Workload nonsense({.texts = {" ", "Hello."}, .min_frames = 2, .max_frames = 2}, {});
  const LevelFigures figures = run_level(*engine_, nonsense, {.users = 1, .requests = 4});
  expect_sum(figures.requests);
  EXPECT_EQ(figures.requests.failed, 2);
  EXPECT_EQ(figures.requests.completed, 2);
  EXPECT_EQ(figures.requests.errors.at("invalid_argument"), 2);
}

TEST_F(LoadLevel, AnInterruptedRunCancelsOpenRequestsAndTheEngineKeepsServing) {
  start(tiny());
  for (const Listening listening : {Listening::fast, Listening::real_time}) {
    int questions = 0;
    const LevelWatch watch{.interrupted = [&] { return ++questions > 4; }};  // after 0.2 s
    const LevelFigures figures = run_level(*engine_, workload(4000, 4000),
                                           {.users = 4, .requests = 100, .listening = listening}, watch);
    EXPECT_TRUE(figures.interrupted);
    expect_sum(figures.requests);
    EXPECT_GE(figures.requests.cancelled, 1);
    EXPECT_LT(figures.requests.submitted, 100);
    EXPECT_LT(figures.elapsed_s, 20);
  }
  EXPECT_EQ(run_level(*engine_, workload(2, 2), {.users = 1, .requests = 2}).requests.completed, 2);
}

TEST_F(LoadLevel, ProgressReachesTheEnd) {
  start(tiny());
  double last = 0;
  const LevelWatch watch{.on_progress = [&](const LevelProgress& progress) {
    EXPECT_GE(progress.fraction, last);
    EXPECT_EQ(progress.submitted, progress.ended + progress.open);
    last = progress.fraction;
  }};
  run_level(*engine_, workload(30, 30), {.users = 2, .requests = 20}, watch);
  EXPECT_LE(last, 1);
}

TEST_F(LoadLevel, VoicesShareTheirPages) {
  start(tiny());
  const std::vector<ReferenceCodes> voices = make_voices(*engine_, {.count = 2, .seconds = 3});
  ASSERT_EQ(voices.size(), 2u);
  EXPECT_NE(voices[0].codes, voices[1].codes);
  ASSERT_EQ(voices[0].codes.size(), voices[1].codes.size());
  const Workload workload({.min_frames = 2, .max_frames = 2}, voices);
  const LevelFigures figures = run_level(*engine_, workload, {.users = 1, .requests = 20});
  ASSERT_EQ(figures.requests.completed, 20);
  // 3 s are 65 columns of some 200; two requests of twenty meet a voice for the first time.
  EXPECT_GT(figures.whole.prefix_hit_rate, 0.2);
  EXPECT_GT(figures.cached_columns, 18 * 60);
}

TEST_F(LoadLevel, AnEngineThatIsNotRunningIsAnError) {
  Engine engine(tiny());
  try {
    run_level(engine, workload(2, 2), {.users = 1, .requests = 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

}  // namespace
}  // namespace shoal::bench
