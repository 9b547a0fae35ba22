#include <gmock/gmock.h>

#include "runtime/voices/code_file.h"
#include "runtime/voices/code_store.h"
#include "runtime/voices/voices_testing.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class CacheFolder : public InTemporaryFolder {
 protected:
  void TearDown() override {
    for (const char* name : {"SHOAL_CACHE_DIR", "XDG_CACHE_HOME"}) unsetenv(name);
    setenv("HOME", home_.c_str(), 1);
    InTemporaryFolder::TearDown();
  }
  const std::string home_ = std::getenv("HOME") ? std::getenv("HOME") : "/";
};

TEST_F(CacheFolder, TheMostSpecificPlaceWins) {
  for (const char* name : {"SHOAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
  EXPECT_EQ(cache_dir(""), "");
  setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(cache_dir(""), "/home/ann/.cache/shoal");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_dir(""), "/home/ann/.cache/shoal");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(cache_dir(""), "/xdg/shoal");
  setenv("SHOAL_CACHE_DIR", "", 1);
  EXPECT_EQ(cache_dir(""), "/xdg/shoal");
  setenv("SHOAL_CACHE_DIR", "/variable", 1);
  EXPECT_EQ(cache_dir(""), "/variable");
  EXPECT_EQ(cache_dir("/configured"), "/configured");
  EXPECT_EQ(cache_dir("none"), "");
  setenv("SHOAL_CACHE_DIR", "none", 1);
  EXPECT_EQ(cache_dir(""), "");
}

TEST_F(CacheFolder, ClearingRemovesOnlyItsOwnFiles) {
  const std::string cache = path("cache");
  CodeStore store({.dir = cache, .fingerprint = "f", .codebooks = 1, .codebook_size = 8});
  for (int n = 0; n < 10; ++n) store.put(hash_clip(std::as_bytes(std::span(&n, 1))), {1, 2, 3});
  EXPECT_EQ(cache_usage(cache).files, 10);
  EXPECT_EQ(cache_usage(cache).bytes, 10 * (96 + 6));

  const std::string left = std::string(kCodeFileMagic) + " half written";
  write(cache + "/voices/00/.shoal-1-2-3.tmp", left);  // of a process that was killed: ours
  write(cache + "/voices/00/notes.txt", left);
  write(cache + "/voices/00/other.codes", "another program's");
  write(cache + "/voices/deep/x.codes", left);
  write(cache + "/voices/x.codes", left);
  write(cache + "/x.codes", left);
  // Links to files and folders that look like ours.
  write(path("outside/x.codes"), left);
  fs::create_symlink(path("outside/x.codes"), cache + "/voices/00/link.codes");
  fs::create_directory_symlink(path("outside"), cache + "/voices/zz");
  fs::remove_all(cache + "/voices/ff");
  const int64_t kept = cache_usage(cache).files;  // all ten unless one began with ff
  fs::create_directory_symlink(path("outside"), cache + "/voices/ff");

  EXPECT_EQ(cache_usage(cache).files, kept);
  EXPECT_EQ(clear_cache(cache).files, kept);
  EXPECT_EQ(cache_usage(cache).files, 0);
  EXPECT_THAT(tree(),
              ElementsAre("cache", "cache/voices", "cache/voices/00", "cache/voices/00/link.codes",
                          "cache/voices/00/notes.txt", "cache/voices/00/other.codes", "cache/voices/deep",
                          "cache/voices/deep/x.codes", "cache/voices/ff", "cache/voices/x.codes",
                          "cache/voices/zz", "cache/x.codes", "outside", "outside/x.codes"));
}

TEST_F(CacheFolder, ClearingEverythingRemovesTheFolderAndDoesNotFollowLinks) {
  CodeStore store({.dir = path("cache"), .fingerprint = "f", .codebooks = 1, .codebook_size = 8});
  store.put({}, {1, 2, 3});
  fs::create_directories(path("linked"));
  fs::create_directory_symlink(path("cache/voices"), path("linked/voices"));
  EXPECT_EQ(clear_cache(path("linked")).files, 0);
  EXPECT_EQ(clear_cache(path("missing")).files, 0);
  EXPECT_EQ(clear_cache("").files + cache_usage("").files, 0);
  EXPECT_EQ(clear_cache(path("cache")).files, 1);
  EXPECT_FALSE(fs::exists(path("cache/voices")));
  store.put({1}, {1, 2, 3});  // and it comes back
  EXPECT_EQ(cache_usage(path("cache")).files, 1);
}

}  // namespace
}  // namespace shoal::runtime
