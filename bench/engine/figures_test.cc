#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/engine/level_figures.h"
#include "bench/engine/load_table.h"
#include "bench/engine/promises.h"

namespace shoal::bench {
namespace {

using testing::HasSubstr;

TEST(Figures, CoverOnlyWhatHappenedBetweenTwoSnapshots) {
  const std::array<double, 1> bounds = {1};
  Statistics before;
  before.batch_size = before.step_s = before.codec_pass_s = Histogram(bounds);
  before.batch_size.add(100);
  before.step_s.add(9);
  before.frames = 50;
  before.audio_s = 3;
  before.kv.hit_columns = 1000;
  before.preemptions = 2;
  Statistics after = before;
  for (const double batch : {2.0, 4.0}) after.batch_size.add(batch);
  for (const double step_s : {0.01, 0.03}) after.step_s.add(step_s);
  after.frames += 6;
  after.audio_s += 5;
  after.kv.hit_columns += 30;
  after.kv.missed_columns += 10;
  after.preemptions += 1;
  const EngineFigures figures = figures_between(before, after, 2);
  EXPECT_DOUBLE_EQ(figures.frames_per_s, 3);
  EXPECT_DOUBLE_EQ(figures.audio_s_per_s, 2.5);
  EXPECT_DOUBLE_EQ(figures.mean_batch, 3);
  EXPECT_NEAR(figures.mean_step_ms, 20, 1e-9);
  EXPECT_EQ(figures.mean_codec_pass_ms, 0);  // there was none
  EXPECT_DOUBLE_EQ(figures.prefix_hit_rate, 0.75);
  EXPECT_EQ(figures.preemptions, 1);
  EXPECT_EQ(figures_between(before, after, 0).frames_per_s, 0);
}

LevelFigures level(int users, double audio_s_per_s, double latency_s) {
  LevelFigures figures;
  figures.plan.users = users;
  figures.requests.submitted = figures.requests.completed = 100;
  figures.busy.audio_s_per_s = audio_s_per_s;
  figures.latency_s.p50 = figures.latency_s.p95 = latency_s;
  return figures;
}

const Promise* find(const std::vector<Promise>& promises, const std::string& part) {
  for (const Promise& promise : promises)
    if (promise.what.find(part) != std::string::npos) return &promise;
  return nullptr;
}

TEST(Promises, AreJudgedAgainstTheFirstLevel) {
  const std::vector<LevelFigures> levels = {level(1, 10, 1), level(2, 17, 1.05), level(4, 40, 1.3),
                                            level(16, 90, 6)};
  const std::vector<Scaling> scaling = scaling_of(levels);
  EXPECT_DOUBLE_EQ(scaling[2].throughput, 4);
  EXPECT_NEAR(scaling[2].added_latency_s, 0.3, 1e-12);
  const std::vector<Promise> promises = promises_of(levels);
  const Promise *two = find(promises, "2 users: throughput"), *four = find(promises, "4 users: throughput"),
                *added = find(promises, "4 users: added"), *late = find(promises, "16 users: 95 %"),
                *ten = find(promises, "users served");
  ASSERT_TRUE(two && four && added && late && ten);
  EXPECT_FALSE(two->kept());  // 1.7 of 1.8
  EXPECT_TRUE(four->kept());
  EXPECT_FALSE(added->kept());  // 300 of 200 ms
  EXPECT_FALSE(late->kept());
  EXPECT_EQ(ten->measured, 4);
  EXPECT_FALSE(ten->kept());
}

TEST(Promises, NoneIsKeptWhereNothingWasCompleted) {
  const std::vector<JudgedLevel> levels = {{.users = 1, .asked = 4}, {.users = 2, .asked = 8}};
  for (const Promise& promise : promises_of(levels)) EXPECT_FALSE(promise.kept()) << promise.what;
}

TEST(Promises, SuccessExcludesCancelledRequests) {
  LevelFigures figures = level(1, 1, 1);
  figures.requests.submitted = 1010;
  figures.requests.completed = 999;
  figures.requests.failed = 1;
  figures.requests.cancelled = 10;
  EXPECT_TRUE(find(promises_of(std::vector{figures}), "succeed")->kept());
  figures.requests.failed = 2, figures.requests.completed = 998;
  EXPECT_FALSE(find(promises_of(std::vector{figures}), "succeed")->kept());
}

TEST(Promises, WithoutASingleUserLevelThereIsNoBaseline) {
  EXPECT_EQ(find(promises_of(std::vector{level(2, 1, 1), level(4, 9, 1)}), "throughput"), nullptr);
  EXPECT_TRUE(promises_of(std::vector<LevelFigures>()).empty());
}

TEST(LoadTable, ReportsFailuresWithTheirReason) {
  LevelFigures figures = level(3, 1, 1);
  figures.requests.submitted = 102;
  figures.requests.refused = 2;
  figures.first_error = Error(ErrorCode::resource_exhausted, "the queue is full");
  const std::string table = load_table(std::vector{figures});
  EXPECT_THAT(table, HasSubstr("102 submitted, 100 completed, 2 refused"));
  EXPECT_THAT(table, HasSubstr("the queue is full"));
  EXPECT_EQ(load_table({}), "");
}

}  // namespace
}  // namespace shoal::bench
