#include "base/file.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }

  // What reading and what mapping `name` says: the same.
  void expect_refused(const std::string& file, ErrorCode code, const std::string& part) const {
    const auto expect = [&](auto&& open) {
      try {
        open();
        FAIL() << file << " was opened";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.message();
        EXPECT_THAT(error.message(), testing::AllOf(testing::StartsWith(file), testing::HasSubstr(part)));
      }
    };
    expect([&] { read_file(file, 100); });
    expect([&] { MappedFile{file}; });
  }

  const TemporaryFolder folder_;
};

TEST_F(FileTest, AFifoIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_refused(path("fifo"), ErrorCode::invalid_argument, "expected a regular file");
}

TEST_F(FileTest, FoldersDevicesAndSocketsAreRefusedByName) {
  expect_refused(folder_.path(), ErrorCode::invalid_argument, "expected a regular file");
  expect_refused("/dev/zero", ErrorCode::invalid_argument, "expected a regular file");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = path("socket");
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_refused(name, ErrorCode::invalid_argument, "expected a regular file");
  close(socket);
  expect_refused(path("nothing"), ErrorCode::not_found, "no such file");
}

TEST_F(FileTest, TheSizeIsCheckedBeforeAnythingIsRead) {
  std::ofstream(path("hole"), std::ios::binary).flush();
  fs::resize_file(path("hole"), uintmax_t{1} << 40);
  try {
    read_file(path("hole"), 100);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_large);
  }
  fs::resize_file(path("hole"), 100);
  EXPECT_EQ(read_file(path("hole"), 100), std::string(100, '\0'));
}

}  // namespace
}  // namespace shoal
