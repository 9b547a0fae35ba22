// For the tests of this folder: a folder of their own, and the log lines of one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace shoal::runtime {

class InTemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "shoal_voices_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    set_log_sink([this](LogLevel, std::string_view message) { log_.emplace_back(message); });
  }
  void TearDown() override {
    set_log_sink({});
    std::filesystem::remove_all(dir_);
  }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  static void write(const std::string& path, std::string_view bytes) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Every file and folder below the test's own, relative to it, sorted.
  std::vector<std::string> tree() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_))
      names.push_back(entry.path().lexically_relative(dir_).string());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string dir_;
  std::vector<std::string> log_;  // the sink is called by one thread at a time
};

// The code of the Error that `action` throws; internal, with a failure, when it throws none.
template <typename Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "expected an Error";
  return ErrorCode::internal;
}

}  // namespace shoal::runtime
