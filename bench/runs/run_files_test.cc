#include "bench/runs/run_files.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "bench/runs/drawings.h"
#include "bench/runs/provenance.h"
#include "bench/runs/report_page.h"
#include "bench/runs/run_folder.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

ordered_json request(int level, double latency_ms, const char* outcome = "completed") {
  return {{"level", level},
          {"outcome", outcome},
          {"due_s", 0.5},
          {"slow", false},
          {"first_audible_ms", latency_ms / 2},
          {"latency_ms", latency_ms}};
}

class RunFiles : public testing::Test {
 protected:
  // A run of one level, named by what it holds.
  std::string whole_run(const std::string& name = "run") {
    const std::string path = folder_.path(name);
    RunFolder run(path, {{"url", "http://h"}});
    for (const double ms : {40.0, 10.0, 30.0, 20.0}) run.add_request(request(0, ms));
    run.add_request(request(0, 99, "failed"));
    run.write_summary({{"levels", {{{"loop", "closed"}, {"concurrency", 1}}}}}, "loop\nclosed\n");
    run.end("completed", "");
    return path;
  }
  void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  // What read_run says of the folder.
  static std::string complaint(const std::string& path) {
    try {
      read_run(path);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.message().find('\n'), std::string::npos);
      return error.message();
    }
  }

  TemporaryFolder folder_;
};

TEST_F(RunFiles, AreReadAsTheyWereWritten) {
  const StoredRun run = read_run(whole_run());
  EXPECT_EQ(run.name, "run");
  EXPECT_EQ(run.run["outcome"], "completed");
  EXPECT_EQ(run.summary["levels"].size(), 1u);
  ASSERT_EQ(run.requests.size(), 5u);
  EXPECT_EQ(run.requests[0].latency_ms, 40);
  EXPECT_EQ(run.requests[4].outcome, "failed");
  EXPECT_FALSE(run.cut_off);
}

TEST_F(RunFiles, BoxesAndCurvesAreMeasuredValuesOfCompletedRequests) {
  const ordered_json drawings = drawings_of(read_run(whole_run()));
  const ordered_json& latency = drawings["groups"][0]["latency_ms"];
  EXPECT_EQ(latency["box"], ordered_json({10, 10, 20, 30, 40}));
  EXPECT_EQ(latency["curve"], ordered_json({{10, 0.25}, {20, 0.5}, {30, 0.75}, {40, 1}}));
  EXPECT_EQ(drawings["timeline"].size(), 5u);
}

TEST_F(RunFiles, ATimelineOfManyIsThinnedAndKeepsTheirNumber) {
  StoredRun run = read_run(whole_run());
  run.requests.assign(100'000, {.outcome = "completed", .latency_ms = 1});
  for (int i = 0; i < 1000; ++i) run.requests.push_back({.outcome = "failed"});
  const ordered_json drawings = drawings_of(run);
  EXPECT_EQ(drawings["timeline"].size(), 2'500u);
  EXPECT_EQ(drawings["requests"], 101'000);
  EXPECT_LE(drawings["groups"][0]["latency_ms"]["curve"].size(), 201u);
}

TEST_F(RunFiles, ARunThatEndedBeforeItsFirstLevelIsRead) {
  const std::string path = folder_.path("early");
  RunFolder(path, ordered_json::object()).end("failed", "nobody listens");
  const StoredRun run = read_run(path);
  EXPECT_TRUE(run.summary["levels"].empty());
  EXPECT_EQ(run.run["error"], "nobody listens");
}

TEST_F(RunFiles, ALastLineThatIsCutOffIsLeftOut) {
  const std::string path = whole_run();
  std::ofstream(path + "/requests.jsonl", std::ios::app) << "{\"level\": 0, \"outc";
  const StoredRun run = read_run(path);
  EXPECT_TRUE(run.cut_off);
  EXPECT_EQ(run.requests.size(), 5u);
}

TEST_F(RunFiles, WhatIsNoRunIsSaidInOneSentence) {
  EXPECT_THAT(complaint(folder_.path("nowhere")), HasSubstr("there is no such folder"));
  EXPECT_THAT(complaint(folder_.path(".")), HasSubstr("it has no run.json"));
}

TEST_F(RunFiles, DamagedFilesAreNamedWithTheirLine) {
  const std::string path = whole_run(), requests = path + "/requests.jsonl";
  const std::string good = request(0, 1).dump() + "\n";
  for (const auto& [line, said] :
       {std::pair{"{\"level\":0,", "line 2: damaged: it is no JSON"},
        std::pair{"[1]", "line 2: damaged: expected a JSON object"},
        std::pair{"{}", "line 2: damaged: it has no level"},
        std::pair{"{\"level\":\"x\"}", "line 2: damaged: it has no level"},
        std::pair{"{\"level\":7}", "line 2: damaged: level 7 of 1"},
        std::pair{"{\"level\":-1}", "line 2: damaged: level -1 of 1"},
        std::pair{"{\"level\":0,\"due_s\":\"x\"}", "line 2: damaged: due_s is no number"},
        std::pair{"{\"level\":0,\"outcome\":3}", "line 2: damaged: outcome is no text"}}) {
    write(requests, good + line + "\n" + good);
    EXPECT_THAT(complaint(path), HasSubstr(said)) << line;
  }
  write(requests, std::string(3 << 20, ' ') + "\n");
  EXPECT_THAT(complaint(path), HasSubstr("line 1: longer than"));
  write(requests, std::string(1000, '[') + "\n");
  EXPECT_THAT(complaint(path), HasSubstr("line 1: more than 32 brackets"));
  write(path + "/summary.json", R"({"schema":"shoal-bench-summary-1","levels":[3]})");
  EXPECT_THAT(complaint(path), HasSubstr("summary.json: damaged: \"levels\" holds no objects"));
  write(path + "/run.json", "");
  EXPECT_THAT(complaint(path), HasSubstr("run.json: damaged: it is no JSON"));
}

TEST_F(RunFiles, UnknownSchemasAreRefused) {
  const std::string path = whole_run();
  write(path + "/summary.json", R"({"schema":"shoal-bench-summary-9","levels":[]})");
  EXPECT_THAT(complaint(path), HasSubstr("its schema is \"shoal-bench-summary-9\"; this program reads "
                                         "\"shoal-bench-summary-1\""));
  write(path + "/run.json", R"({"outcome":"completed"})");
  EXPECT_THAT(complaint(path), HasSubstr("it names no schema"));
}

TEST_F(RunFiles, AMissingListOfRequestsIsMissed) {
  const std::string path = whole_run();
  std::filesystem::remove(path + "/requests.jsonl");
  EXPECT_THAT(complaint(path), HasSubstr("requests.jsonl: cannot be read"));
}

TEST_F(RunFiles, TextsOfAReportCannotBecomeMarkup) {
  if (!can_draw_reports()) GTEST_SKIP() << "built without the page";
  StoredRun run = read_run(whole_run());
  run.name = "</script><script>alert(1)</script><!--";
  run.run["url"] = "<img src=x onerror=alert(1)>&amp;\xff";
  const std::string page = report_page({&run, 1});
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<img src=x"), std::string::npos);
  const size_t begin = page.find("id=\"data\">") + 10, end = page.find("</script>", begin);
  const auto data = nlohmann::json::parse(page.substr(begin, end - begin));
  EXPECT_EQ(data["runs"][0]["name"], run.name);
  EXPECT_EQ(data["runs"][0]["summary"], nlohmann::json(run.summary));
}

TEST_F(RunFiles, AReportIsReplacedWholeOrNotAtAll) {
  if (!can_draw_reports()) GTEST_SKIP() << "built without the page";
  const StoredRun run = read_run(whole_run());
  const std::string path = folder_.path("page.html");
  write(path, "old");
  write_report(path, {&run, 1});
  EXPECT_GT(std::filesystem::file_size(path), 100'000u);
  EXPECT_THROW(write_report(folder_.path("no/such/folder.html"), {&run, 1}), Error);
}

TEST(Provenance, TheHashIsThatOfTheSettings) {
  EXPECT_EQ(config_hash({{"a", 1}}), config_hash({{"a", 1}}));
  EXPECT_NE(config_hash({{"a", 1}}), config_hash({{"a", 2}}));
  EXPECT_EQ(config_hash({{"a", 1}}).size(), 16u);
  const ordered_json from = provenance();
  for (const char* name : {"program", "version", "commit", "command", "machine"})
    EXPECT_TRUE(from.contains(name));
}

}  // namespace
}  // namespace shoal::runs
