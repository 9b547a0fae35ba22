#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "bench/load/level_figures.h"
#include "bench/load/summary.h"
#include "bench/load/texts.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

// Sound of one second, all of it after so many milliseconds.
RequestRecord answered(int64_t after_ms, int64_t characters = 15) {
  RequestRecord record;
  record.characters = characters;
  record.due_us = record.begun_us = 1'000'000;
  record.first_byte_us = record.end_us = 1'000'000 + after_ms * 1'000;
  record.pieces = {{record.end_us, 24'000}};
  record.format.rate_hz = 24'000;
  record.first_audible_frame = 0;
  record.status = 200;
  return record;
}

RequestRecord dropped() {
  RequestRecord record = answered(5);
  record.pieces.clear();
  record.outcome = Outcome::failed;
  record.failure = Failure{"no_answer", "no answer: closed"};
  return record;
}

LevelFigures level_of(const std::vector<RequestRecord>& records, const std::string& slo = "") {
  LevelTally tally(parse_objectives(slo));
  for (const RequestRecord& record : records) tally.add(record, figures_of(record));
  return tally.figures({.users = 4, .requests = 100}, {.began_us = 1'000'000, .ended_us = 3'000'000});
}

TEST(LevelFigures, OneLostAnswerInAHundredIsSeen) {
  std::vector<RequestRecord> records(99, answered(10));
  records.push_back(dropped());
  const LevelFigures figures = level_of(records);
  EXPECT_EQ(figures.completed, 99);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.failures.at("no_answer").count, 1);
  EXPECT_THAT(table_of(std::vector{figures}),
              HasSubstr("1 of 100 failed, no_answer; the first: no answer: closed"));
}

TEST(LevelFigures, AreNearestRanks) {
  std::vector<RequestRecord> records;
  for (int i = 1; i <= 20; ++i) records.push_back(answered(i));
  const LevelFigures figures = level_of(records);
  EXPECT_EQ(figures.first_sound_ms.p50, 10);
  EXPECT_EQ(figures.first_sound_ms.p90, 18);
  EXPECT_EQ(figures.first_audible_ms.p95, 19);
  EXPECT_EQ(figures.first_audible_ms.p99, 20);
  EXPECT_EQ(figures.per_s(figures.sound_s), 10);
  EXPECT_EQ(figures.per_s(static_cast<double>(figures.characters)), 150);
}

TEST(LevelFigures, GoodputCountsWhatKeepsEveryObjective) {
  std::vector<RequestRecord> records = {answered(100), answered(200), answered(201), dropped()};
  EXPECT_EQ(level_of(records, "ttfa_ms=200").good, 2);
  EXPECT_EQ(level_of(records, "ttfa_ms=200").good_share(), 0.5);
  EXPECT_EQ(level_of(records).good, 3);
  records[0].pieces = {{1'010'000, 2'400}, {1'500'000, 24'000}};  // dry after 0.1 s
  EXPECT_EQ(level_of(records, "ttfa_ms=200,underruns=0").good, 1);
  records[1].first_audible_frame = -1;  // silent
  EXPECT_EQ(level_of(records, "ttfa_ms=200,underruns=0").good, 0);
}

TEST(LevelFigures, SlowReadersCountOnlyAsSuch) {
  RequestRecord slow = answered(9'000);
  slow.slow = true;
  const LevelFigures figures = level_of({answered(10), slow});
  EXPECT_EQ(figures.completed, 1);
  EXPECT_EQ(figures.slow, 1);
  EXPECT_EQ(figures.latency_ms.max, 10);
}

TEST(LevelFigures, DoubtARateThatMakesNoSpeech) {
  EXPECT_TRUE(level_of({answered(10, 15)}).notes().empty());
  EXPECT_THAT(level_of({answered(10, 30)}).notes().at(0), HasSubstr("30.0 characters in a second"));
  EXPECT_THAT(level_of({answered(10, 5)}).notes().at(0), HasSubstr("24000 Hz"));
}

TEST(LevelFigures, ALateClientSaysSo) {
  LevelTally tally({});
  RequestRecord record = answered(50);
  record.begun_us += 20'000;
  tally.add(record, figures_of(record));
  EXPECT_THAT(tally.figures({}, {.ended_us = 1}).notes().at(0), HasSubstr("requests by 20.0 ms"));
}

TEST(Objectives, AreChecked) {
  EXPECT_EQ(parse_objectives("ttfa_ms=200,underruns=0").size(), 2u);
  for (const char* text : {"ttfa=200", "ttfa_ms", "ttfa_ms=", "ttfa_ms=x", "ttfa_ms=-1", "ttfa_ms=1;rtf=2"})
    EXPECT_THROW(parse_objectives(text), Error) << text;
}

TEST(Texts, HaveTheLengthOfTheirSet) {
  for (const std::string& text : built_in_texts("short", 1)) EXPECT_LE(text.size(), 60u) << text;
  for (const std::string& text : built_in_texts("medium", 1)) EXPECT_LE(text.size(), 210u) << text;
  for (const std::string& text : built_in_texts("long", 1)) EXPECT_GE(text.size(), 700u);
  EXPECT_EQ(built_in_texts("long", 3), built_in_texts("long", 3));
  EXPECT_THROW(built_in_texts("huge", 1), Error);
}

TEST(RunFolder, KeepsEverythingAndNeverOverwrites) {
  const TemporaryFolder folder;
  const std::string path = folder.path("run");
  const std::vector<LevelFigures> levels = {level_of({answered(10), dropped()}), level_of({dropped()})};
  {
    runs::RunFolder run(path, {{"url", "http://h"}});
    EXPECT_EQ(nlohmann::json::parse(std::ifstream(path + "/run.json"))["outcome"], "running");
    run.add_request(json_of(answered(10), figures_of(answered(10)), true, 1'000'000));
    write_levels(run, levels);
    run.end("failed", "why");
  }
  const auto run = nlohmann::json::parse(std::ifstream(path + "/run.json"));
  EXPECT_EQ(run["schema"], "shoal-bench-run-1");
  EXPECT_EQ(run["url"], "http://h");
  EXPECT_EQ(run["outcome"], "failed");
  EXPECT_EQ(run["error"], "why");
  const auto request = nlohmann::json::parse(std::ifstream(path + "/requests.jsonl"));
  EXPECT_EQ(request["first_audible_ms"], 10);
  EXPECT_EQ(request["underruns"]["buffer_100ms"]["count"], 0);
  const auto summary = nlohmann::json::parse(std::ifstream(path + "/summary.json"));
  EXPECT_EQ(summary["levels"][0]["first_audible_ms"]["p95"], 10);
  EXPECT_EQ(summary["levels"][0]["failures"]["no_answer"]["count"], 1);
  std::ifstream csv(path + "/summary.csv");
  std::string heading, first;
  std::getline(csv, heading);
  std::getline(csv, first);
  EXPECT_TRUE(heading.starts_with("loop,concurrency,requests_begun,requests_completed,requests_slow,"))
      << heading;
  EXPECT_TRUE(first.starts_with("closed,4,2,1,")) << first;
  EXPECT_EQ(std::count(heading.begin(), heading.end(), ','), std::count(first.begin(), first.end(), ','));
  EXPECT_THROW(runs::RunFolder(path, {}), Error);
}

}  // namespace
}  // namespace shoal::load
