// For the tests of this folder: a folder of their own, and the log lines of one test.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/temporary_folder_testing.h"

namespace shoal::runtime {

class InTemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view message) { log_.emplace_back(message); });
  }
  void TearDown() override { set_log_sink({}); }

  std::string path(const std::string& name) const { return folder_.path(name); }
  static void write(const std::string& path, std::string_view bytes) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::vector<std::string> tree() const { return folder_.tree(); }

  const TemporaryFolder folder_;
  const std::string dir_ = folder_.path();
  std::vector<std::string> log_;  // one thread at a time calls the sink
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
