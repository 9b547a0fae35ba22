// The program as a black box: arguments in; files, messages and exit codes out.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "audio/encoder.h"
#include "base/file.h"
#include "base/temporary_folder_testing.h"

namespace shoal {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SHOAL_CACHE_DIR", path("cache").c_str(), 1);  // not the cache of the person who runs the tests
  }
  void TearDown() override { unsetenv("SHOAL_CACHE_DIR"); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  Outcome run(const std::string& arguments, const std::string& input = "") const {
    write("stdin", input);
    const std::string command =
        "cd '" + dir_.string() + "' && '" SHOAL_PROGRAM "' " + arguments + " <stdin >stdout 2>stderr";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(path("stdout"), 1 << 28),
            read_file(path("stderr"), 1 << 20)};
  }

  // The same of `commands` of a shell, in which $SHOAL is the program; a signal that ended them is -number.
  Outcome run_shell(const std::string& commands) const {
    write("commands", "cd '" + dir_.string() + "'\nSHOAL='" SHOAL_PROGRAM "'\n" + commands + "\n");
    const int status = std::system(
        ("sh '" + path("commands") + "' >'" + path("stdout") + "' 2>'" + path("stderr") + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(path("stdout"), 1 << 28),
            read_file(path("stderr"), 1 << 20)};
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  void write_clip(const std::string& name, double seconds, float amplitude) const {
    std::vector<float> samples(static_cast<size_t>(16000 * seconds));
    for (size_t i = 0; i < samples.size(); ++i)
      samples[i] = amplitude * static_cast<float>((i / 40) % 2 ? 1 : -1);
    const std::vector<std::byte> bytes =
        audio::encode(audio::Format::wav, {.sample_rate_hz = 16000}, samples);
    write(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  // Exit code 2, one line that contains `part`, no file left.
  void expect_users_fault(const std::string& arguments, const std::string& part,
                          const std::string& input = "") const {
    SCOPED_TRACE(arguments.substr(0, 120));
    const Outcome outcome = run(arguments, input);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("out")) << "left behind: " << entry.path();
    }
  }

  const TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
};

}  // namespace shoal
