// `shoal bench engine` as its users meet it, on a tiny model.
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json.h"
#include "base/temporary_folder_testing.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kCommand = "'" SHOAL_PROGRAM "' bench engine --model '" SHOAL_SOURCE_DIR
                                 "/tests/data/fish/set_a' --threads 1 --no-with-encoder --kv-memory-mb 32 ";

class Load : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  std::string text(const std::string& name) const { return read_file(path(name), 1 << 20); }
  int shell(const std::string& command) const {
    const int status = std::system(("cd '" + dir_.string() + "'; " + command).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int run(const std::string& arguments) const { return shell(kCommand + arguments + " >stdout 2>stderr"); }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
};

int64_t sum_of_outcomes(const Json& requests) {
  int64_t sum = 0;
  for (const char* outcome : {"completed", "refused", "failed", "expired", "cancelled"})
    sum += requests.at(outcome).as_integer();
  return sum;
}

TEST_F(Load, EachLevelReportsItsSpeech) {
  ASSERT_EQ(
      run("--concurrency 1,2 --requests 6 --frames 4-8 --voices 2 --voice-seconds 1 --json report.json"), 0)
      << text("stderr");
  EXPECT_THAT(text("stdout"), HasSubstr("2 users: throughput of one"));
  const Json report = Json::parse(text("report.json"), "report");
  ASSERT_EQ(report.at("levels").as_array().size(), 2u);
  for (const Json& level : report.at("levels").as_array()) {
    const Json& requests = level.at("requests");
    EXPECT_EQ(requests.at("submitted").as_integer(), 6);
    EXPECT_EQ(requests.at("completed").as_integer(), 6);
    EXPECT_EQ(sum_of_outcomes(requests), 6);
    EXPECT_EQ(level.at("request_latency_s").at("count").as_integer(), 6);
    EXPECT_GT(level.at("whole").at("audio_s_per_s").as_number(), 0);
    EXPECT_GT(level.at("whole").at("prefix_hit_rate").as_number(), 0);
  }
  EXPECT_THAT(report.at("settings").as_string(), HasSubstr("kv_memory_mb = 32  # flag --kv-memory-mb"));
}

TEST_F(Load, OnlyTheReportGoesToStandardOutput) {
  ASSERT_EQ(run("--rate 200 --requests 9 --frames 2 --listen real-time --json -"), 0) << text("stderr");
  const Json level = Json::parse(text("stdout"), "report").at("levels").as_array()[0];
  EXPECT_EQ(level.at("plan").at("loop").as_string(), "open");
  EXPECT_EQ(level.at("requests").at("submitted").as_integer(), 9);
  EXPECT_EQ(sum_of_outcomes(level.at("requests")), 9);
}

TEST_F(Load, AnInterruptedRunReportsItsResultsSoFar) {
  const int code = shell(
      std::string(kCommand) +
      "--concurrency 2 --frames 2 --duration 300 --warm-up-requests 0 --json report.json >stdout 2>stderr & "
      "child=$!; for i in $(seq 600); do [ -s stdout ] && break; sleep 0.1; done; sleep 1; "
      "kill -TERM $child; wait $child");
  EXPECT_EQ(code, 130);
  EXPECT_THAT(text("stderr"), HasSubstr("interrupted"));
  const Json level = Json::parse(text("report.json"), "report").at("levels").as_array().at(0);
  EXPECT_TRUE(level.at("interrupted").as_bool());
  EXPECT_EQ(sum_of_outcomes(level.at("requests")), level.at("requests").at("submitted").as_integer());
}

TEST_F(Load, AKokoroEngineSpeaksPhonemes) {
  const std::string command =
      "'" SHOAL_PROGRAM "' bench engine --random kokoro --threads 2 --precision bfloat16 ";
  ASSERT_EQ(shell(command + "--concurrency 1,3 --requests 3 --phonemes 2-6 --warm-up-requests 1 "
                            "--no-warm-up --json report.json >stdout 2>stderr"),
            0)
      << text("stderr");
  EXPECT_THAT(text("stdout"), testing::Not(HasSubstr("KV")));
  const Json report = Json::parse(text("report.json"), "report");
  EXPECT_EQ(report.at("workload").at("phonemes").as_string(), "2-6");
  ASSERT_EQ(report.at("levels").as_array().size(), 2u);
  for (const Json& level : report.at("levels").as_array()) {
    EXPECT_EQ(level.at("requests").at("completed").as_integer(), 3);
    EXPECT_GT(level.at("whole").at("audio_s_per_s").as_number(), 0);
    EXPECT_GE(level.at("whole").at("mean_batch").as_number(), 1);
    EXPECT_EQ(level.at("first_audio_s").at("count").as_integer(), 3);
    EXPECT_EQ(level.find("kv"), nullptr);
  }
  for (const char* refused : {"--frames 5", "--voices 2", "--voice-seconds 5", "--shared-voice 0.5",
                              "--phonemes 0", "--phonemes x"}) {
    EXPECT_EQ(shell(command + refused + " >stdout 2>stderr"), 2) << refused;
    EXPECT_THAT(text("stderr"), HasSubstr(std::string(refused).substr(2, 6))) << refused;
  }
  EXPECT_EQ(run("--phonemes 20"), 2);
  EXPECT_THAT(text("stderr"), HasSubstr("--phonemes: only Kokoro models read them"));
}

TEST_F(Load, BadOptionsAreTheUsersFaultBeforeAnythingIsLoaded) {
  for (const char* arguments :
       {"--rate 5 --concurrency 2", "--rate 0", "--frames 0", "--frames 3-x", "--frames 9-2",
        "--shared-voice 0.5", "--concurrency 0", "--concurrency 257", "--voices -1",
        "--voices 2 --voice-seconds 0", "--texts gone.txt", "--random s1-mini", "--requests 0", "--seed -1",
        "--duration nan", "--warm-up-requests 257", "--max-batch-size 0", "--listen slow"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    EXPECT_EQ(text("stdout"), "") << arguments;
  }
}

TEST_F(Load, PrintsItsSettingsInsteadOfRunning) {
  ASSERT_EQ(shell("'" SHOAL_PROGRAM "' bench engine --random s1-mini --print-config >stdout 2>stderr"), 0);
  EXPECT_THAT(text("stdout"), HasSubstr("model = \"random:s1-mini\"  # flag --random"));
}

}  // namespace
}  // namespace shoal
