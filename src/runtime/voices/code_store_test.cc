#include "runtime/voices/code_store.h"

#include <gmock/gmock.h>
#include <thread>

#include "base/file.h"
#include "runtime/voices/code_file.h"
#include "runtime/voices/voices_testing.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAreArray;
using testing::HasSubstr;

ClipHash clip(int n) {
  const std::string text = "clip " + std::to_string(n);
  return hash_clip(std::as_bytes(std::span(text)));
}

// Codes that tell which clip they belong to; every clip has another length.
std::vector<uint16_t> codes_of(int n) {
  std::vector<uint16_t> codes(static_cast<size_t>(4 * (n % 50 + 1)));
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint16_t>((31 * n + static_cast<int>(i)) % 4096);
  return codes;
}

class CodeStoreTest : public InTemporaryFolder {
 protected:
  CodeStore::Options options(int64_t max_clips = 1000) const {
    return {.max_clips = max_clips,
            .dir = path("cache"),
            .fingerprint = "f",
            .codebooks = 4,
            .codebook_size = 4096};
  }
  CodeStore::Options memory_only(int64_t max_clips) const {
    CodeStore::Options o = options(max_clips);
    o.dir.clear();
    return o;
  }
  std::string file_of(int n) const {
    return code_file_path(path("cache"), {.clip = clip(n), .codec = codec_digest("f", 4, 4096)});
  }
};

// A mapping would kill the process at the next look at the codes.
TEST_F(CodeStoreTest, TruncatingAFileInUseHarmsNobody) {
  CodeStore(options()).put(clip(1), codes_of(1));
  CodeStore store(options());
  const auto codes = store.find(clip(1));
  ASSERT_NE(codes, nullptr);
  fs::permissions(file_of(1), fs::perms::owner_all);
  fs::resize_file(file_of(1), 0);
  EXPECT_THAT(codes->values(), ElementsAreArray(codes_of(1)));
}

TEST_F(CodeStoreTest, OversizedFilesAreDroppedUnread) {
  CodeStore(options()).put(clip(1), codes_of(1));
  fs::permissions(file_of(1), fs::perms::owner_all);
  fs::resize_file(file_of(1), uintmax_t{1} << 40);  // a hole
  CodeStore store(options());
  EXPECT_EQ(store.find(clip(1)), nullptr);
  EXPECT_FALSE(fs::exists(file_of(1)));
  EXPECT_EQ(store.statistics().dropped_files, 1);
}

TEST_F(CodeStoreTest, FindsStoredCodesAlsoAfterARestart) {
  {
    CodeStore store(options());
    EXPECT_EQ(store.find(clip(1)), nullptr);
    const auto put = store.put(clip(1), codes_of(1));
    EXPECT_EQ(store.find(clip(1)), put);
    EXPECT_EQ(put->frames(), 2);
    EXPECT_EQ(put->codebooks(), 4);
    EXPECT_EQ(store.bytes(), 16);
    EXPECT_EQ(store.statistics().encoded, 1);
    EXPECT_EQ(store.statistics().memory_hits, 1);
    EXPECT_EQ(store.statistics().disk_hits, 0);
  }
  CodeStore store(options());
  const auto codes = store.find(clip(1));
  ASSERT_NE(codes, nullptr);
  EXPECT_THAT(codes->values(), ElementsAreArray(codes_of(1)));
  EXPECT_EQ(codes->frames(), 2);
  EXPECT_EQ(store.find(clip(1)), codes);
  EXPECT_EQ(store.statistics().disk_hits, 1);
  EXPECT_EQ(store.statistics().memory_hits, 1);
  EXPECT_EQ(store.statistics().in_memory, 1);
  EXPECT_EQ(store.bytes(), 16);

  store.drop_memory();
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_EQ(store.statistics().in_memory, 0);
  EXPECT_THAT(codes->values(), ElementsAreArray(codes_of(1)));  // whoever holds them keeps them
  EXPECT_EQ(clear_cache(path("cache")).files, 1);
  EXPECT_THAT(codes->values(), ElementsAreArray(codes_of(1)));  // the file has no name any more
  EXPECT_EQ(store.find(clip(1)), nullptr);
  EXPECT_THAT(log_, testing::IsEmpty());
}

TEST_F(CodeStoreTest, AnotherCodecFindsNoCodes) {
  CodeStore(options()).put(clip(1), codes_of(1));
  CodeStore::Options o = options();
  o.fingerprint = "g";
  EXPECT_EQ(CodeStore(o).find(clip(1)), nullptr);
  o = options();
  o.codebooks = 2;
  EXPECT_EQ(CodeStore(o).find(clip(1)), nullptr);
  EXPECT_NE(CodeStore(options()).find(clip(1)), nullptr);
  EXPECT_THAT(log_, testing::IsEmpty());
}

TEST_F(CodeStoreTest, TheLeastRecentlyUsedClipIsEvictedFirst) {
  CodeStore store(memory_only(3));
  for (const int n : {1, 2, 3}) store.put(clip(n), codes_of(n));
  store.find(clip(1));
  store.put(clip(2), codes_of(2));  // also a use
  store.put(clip(4), codes_of(4));
  EXPECT_EQ(store.find(clip(3)), nullptr);
  EXPECT_NE(store.find(clip(1)), nullptr);
  store.put(clip(5), codes_of(5));
  EXPECT_EQ(store.find(clip(2)), nullptr);
  EXPECT_EQ(store.statistics().in_memory, 3);
  EXPECT_EQ(store.bytes(), 8 * (2 + 5 + 6));

  CodeStore none(memory_only(0));
  EXPECT_THAT(none.put(clip(1), codes_of(1))->values(), ElementsAreArray(codes_of(1)));
  EXPECT_EQ(none.find(clip(1)), nullptr);
  EXPECT_EQ(none.bytes(), 0);
}

TEST_F(CodeStoreTest, DamagedFilesAreDroppedAndLogged) {
  CodeStore(options()).put(clip(1), codes_of(1));
  const std::string whole = read_file(file_of(1), 1 << 20);
  const auto expect_dropped = [&](const std::string& bytes) {
    fs::remove(file_of(1));
    write(file_of(1), bytes);
    log_.clear();
    CodeStore store(options());
    EXPECT_EQ(store.find(clip(1)), nullptr);
    EXPECT_EQ(store.statistics().dropped_files, 1);
    EXPECT_EQ(store.statistics().disk_hits, 0);
    ASSERT_EQ(log_.size(), 1u);
    EXPECT_THAT(log_[0], HasSubstr("dropped"));
    EXPECT_FALSE(fs::exists(file_of(1)));
    EXPECT_EQ(store.find(clip(1)), nullptr);
    EXPECT_EQ(store.statistics().dropped_files, 1);
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE(i);
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
    expect_dropped(bytes);
    expect_dropped(whole.substr(0, i));
  }
  expect_dropped(whole + "x");
  // The file of another clip under this name.
  CodeStore(options()).put(clip(2), codes_of(2));
  expect_dropped(read_file(file_of(2), 1 << 20));
  // The next put mends it.
  CodeStore(options()).put(clip(1), codes_of(1));
  EXPECT_EQ(read_file(file_of(1), 1 << 20), whole);
}

TEST_F(CodeStoreTest, LinksPipesAndFoldersAreNotRead) {
  CodeStore(options()).put(clip(1), codes_of(1));
  fs::rename(file_of(1), path("elsewhere"));
  fs::create_symlink(path("elsewhere"), file_of(1));
  CodeStore store(options());
  EXPECT_EQ(store.find(clip(1)), nullptr);
  EXPECT_TRUE(fs::exists(path("elsewhere")));
  ASSERT_EQ(mkfifo(file_of(1).c_str(), 0600), 0);
  EXPECT_EQ(store.find(clip(1)), nullptr);
  fs::create_directories(file_of(1) + "/x");
  EXPECT_EQ(store.find(clip(1)), nullptr);
  EXPECT_NE(store.put(clip(1), codes_of(1)), nullptr);
  EXPECT_EQ(store.statistics().dropped_files, 3);
}

TEST_F(CodeStoreTest, AFailingDiskCausesOneLogLine) {
  write(path("file"), "not a folder");
  for (const std::string& dir : {path("file"), path("file/below"), std::string("/proc/shoal")}) {
    SCOPED_TRACE(dir);
    log_.clear();
    CodeStore::Options o = options();
    o.dir = dir;
    CodeStore store(o);
    for (int n = 0; n < 5; ++n) {
      EXPECT_EQ(store.find(clip(n)), nullptr);
      EXPECT_THAT(store.put(clip(n), codes_of(n))->values(), ElementsAreArray(codes_of(n)));
      EXPECT_NE(store.find(clip(n)), nullptr);
    }
    EXPECT_EQ(log_.size(), 1u);
  }
  EXPECT_EQ(read_file(path("file"), 100), "not a folder");
}

TEST_F(CodeStoreTest, AReadOnlyFolderIsReadButNotWritten) {
  CodeStore(options()).put(clip(1), codes_of(1));
  constexpr auto kReadOnly = static_cast<fs::perms>(0555);
  for (const std::string& folder : {path("cache/voices"), path("cache"), dir_})
    fs::permissions(folder, kReadOnly);
  const bool root = geteuid() == 0;  // nothing is read-only to root
  ASSERT_EQ(root ? seteuid(65534) : 0, 0);
  {
    CodeStore::Options o = options();
    o.max_disk_bytes = 1;  // there is more, and it stays
    CodeStore store(o);
    EXPECT_NE(store.find(clip(1)), nullptr);
    for (int n = 2; n < 9; ++n) EXPECT_NE(store.put(clip(n), codes_of(n)), nullptr);
    EXPECT_EQ(log_.size(), 1u);
    EXPECT_EQ(cache_usage(path("cache")).files, 1);
  }
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  for (const std::string& folder : {dir_, path("cache"), path("cache/voices")})
    fs::permissions(folder, fs::perms::owner_all);
}

// Clips of one block of the disk each; the times of their files are set, not waited for.
class LimitedCodeStore : public CodeStoreTest {
 protected:
  CodeStore::Options limited(int64_t blocks) const {
    CodeStore::Options o = options();
    o.max_disk_bytes = blocks * disk_bytes_of(1);
    return o;
  }
  void set_age(int n, std::chrono::seconds age) const {
    fs::last_write_time(file_of(n), fs::file_time_type::clock::now() - age);
  }
  std::chrono::seconds age(int n) const {
    return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() -
                                                            fs::last_write_time(file_of(n)));
  }
  int64_t files() const { return cache_usage(path("cache")).files; }
  std::vector<int> kept(int count) const {
    std::vector<int> numbers;
    for (int n = 0; n < count; ++n)
      if (fs::exists(file_of(n))) numbers.push_back(n);
    return numbers;
  }
};

TEST_F(LimitedCodeStore, TheFilesStayWithinTheLimit) {
  CodeStore store(limited(8));
  for (int n = 0; n < 40; ++n) {
    store.put(clip(n), codes_of(n));
    // Full with 8; one more, and three quarters are left.
    EXPECT_EQ(files(), n < 8 ? n + 1 : 6 + (n - 8) % 3) << n;
  }
  EXPECT_EQ(store.statistics().in_memory, 40);  // the limit is the disk's alone
  const CacheUsage usage = cache_usage(path("cache"));
  EXPECT_EQ(usage.disk_bytes, usage.files * 4096);
  EXPECT_LT(usage.bytes, usage.disk_bytes);
  EXPECT_THAT(log_, testing::IsEmpty());

  CodeStore unlimited(limited(0));
  for (int n = 40; n < 60; ++n) unlimited.put(clip(n), codes_of(n));
  EXPECT_EQ(files(), usage.files + 20);
}

TEST_F(LimitedCodeStore, TheLeastRecentlyUsedFilesAreRemovedFirst) {
  {
    CodeStore store(limited(8));
    for (int n = 0; n < 8; ++n) {
      store.put(clip(n), codes_of(n));
      set_age(n, std::chrono::hours(100 - n));
    }
  }
  CodeStore store(limited(8));  // with nothing in memory
  EXPECT_NE(store.find(clip(1)), nullptr);
  EXPECT_LT(age(1), std::chrono::seconds(60));
  store.put(clip(8), codes_of(8));
  EXPECT_THAT(kept(9), testing::ElementsAre(1, 4, 5, 6, 7, 8));
  EXPECT_THAT(log_, testing::IsEmpty());
}

TEST_F(LimitedCodeStore, AUseIsRecordedAtMostOnceAMinute) {
  CodeStore(options()).put(clip(1), codes_of(1));
  const auto after_use = [&](std::chrono::seconds before) {
    set_age(1, before);
    EXPECT_NE(CodeStore(options()).find(clip(1)), nullptr);
    return age(1);
  };
  EXPECT_GE(after_use(std::chrono::seconds(30)), std::chrono::seconds(30));
  EXPECT_LT(after_use(std::chrono::seconds(90)), std::chrono::seconds(30));
  EXPECT_GT(after_use(std::chrono::hours(-1)), std::chrono::seconds(-30));  // by a clock that was wrong
}

TEST_F(LimitedCodeStore, ForeignFilesStayAndDoNotCount) {
  const std::string big(100'000, 'x');
  const std::vector<std::string> others = {
      "voices/00/notes.txt", "voices/00/other.codes", "voices/x.codes", "voices/zz/x.codes", "x.codes",
      "voices/.shoal-1.tmp"};
  for (const std::string& name : others) write(path("cache/" + name), big);
  write(path("outside/x.codes"), std::string(kCodeFileMagic) + big);
  fs::create_symlink(path("outside/x.codes"), path("cache/voices/00/link.codes"));
  for (const std::string& name : others)
    fs::last_write_time(path("cache/" + name), fs::file_time_type::clock::now() - std::chrono::hours(9));
  CodeStore store(limited(8));
  for (int n = 0; n < 30; ++n) {
    store.put(clip(n), codes_of(n));
    EXPECT_GE(files(), std::min(n + 1, 6));
  }
  for (const std::string& name : others) EXPECT_EQ(read_file(path("cache/" + name), 1 << 20), big) << name;
  EXPECT_TRUE(fs::is_symlink(path("cache/voices/00/link.codes")));
  EXPECT_TRUE(fs::exists(path("outside/x.codes")));
}

TEST_F(LimitedCodeStore, TwoStoresOnOneFolderShareOneLimit) {
  CodeStore one(limited(8)), two(limited(8));
  for (int n = 0; n < 60; ++n) {
    (n % 3 ? one : two).put(clip(n), codes_of(n));
    EXPECT_LE(files(), 2 * 8) << n;  // neither sees what the other writes until it counts
  }
  one.put(clip(60), codes_of(60));
  for (int n = 61; n < 70; ++n) one.put(clip(n), codes_of(n));
  EXPECT_LE(files(), 8);
  // Somebody clears the folder: what was counted is too much, and counting again says so.
  clear_cache(path("cache"));
  for (int n = 0; n < 7; ++n) one.put(clip(n), codes_of(n));
  EXPECT_EQ(files(), 7);
  EXPECT_THAT(log_, testing::IsEmpty());
}

TEST_F(LimitedCodeStore, FilesThatCannotBeRemovedCauseOneLogLine) {
  std::vector<std::string> shards;
  for (int n = 0; n < 12; ++n) {
    CodeStore(options()).put(clip(n), codes_of(n));
    set_age(n, std::chrono::hours(9));
    shards.push_back(fs::path(file_of(n)).parent_path().string());
  }
  fs::permissions(path("cache/voices"), fs::perms::all);
  fs::permissions(dir_, fs::perms::all);
  for (const std::string& shard : shards) fs::permissions(shard, static_cast<fs::perms>(0555));
  const bool root = geteuid() == 0;  // everything can be removed by root
  ASSERT_EQ(root ? seteuid(65534) : 0, 0);
  {
    CodeStore store(limited(8));
    int written = 0;
    for (int n = 12; written < 2; ++n) {  // in folders that can be written
      if (std::ranges::count(shards, fs::path(file_of(n)).parent_path().string())) continue;
      EXPECT_NE(store.put(clip(n), codes_of(n)), nullptr);
      ++written;
    }
    EXPECT_THAT(log_, testing::ElementsAre(HasSubstr("12 files cannot be removed")));
  }
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  for (const std::string& shard : shards) fs::permissions(shard, fs::perms::owner_all);
}

TEST_F(CodeStoreTest, NoTemporaryFilesAreLeft) {
  CodeStore store(options());
  for (int round = 0; round < 3; ++round)
    for (int n = 0; n < 20; ++n) store.put(clip(n), codes_of(n));
  int files = 0;
  for (const std::string& name : tree()) {
    if (name == "cache" || name == "cache/voices" || name.size() == std::string("cache/voices/ab").size())
      continue;
    EXPECT_TRUE(name.ends_with(".codes")) << name;
    ++files;
  }
  EXPECT_EQ(files, 20);
}

// Threads over two stores on one folder, as two processes would be, with memories and a disk far too small
// and somebody who clears the folder: whatever is found is what was put.
TEST_F(CodeStoreTest, ThreadsAndStoresShareAFolder) {
  CodeStore::Options limited = options(5);
  limited.max_disk_bytes = 6 * disk_bytes_of(1);
  CodeStore one(options(3)), two(limited);
  const auto work = [&](int worker) {
    for (int i = 0; i < 300; ++i) {
      const int n = (i * (worker + 3) + worker) % 12;
      CodeStore& store = (i + worker) % 2 ? one : two;
      auto codes = store.find(clip(n));
      if (!codes) codes = store.put(clip(n), codes_of(n));
      EXPECT_THAT(codes->values(), ElementsAreArray(codes_of(n)));
      if (i % 50 == 49) worker ? store.drop_memory() : static_cast<void>(clear_cache(path("cache")));
      EXPECT_GE(store.bytes() + store.statistics().in_memory, 0);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < 4; ++worker) threads.emplace_back(work, worker);
  }
  EXPECT_LE(one.statistics().in_memory, 3);
  EXPECT_EQ(one.statistics().dropped_files + two.statistics().dropped_files, 0);
}

}  // namespace
}  // namespace shoal::runtime
