// Named voices and the cache of their codes, as users of the program meet them.
#include "base/json.h"
#include "tests/system/program_testing.h"

namespace shoal {
namespace {

TEST_F(Program, OneBadVoiceDoesNotHideTheOthers) {
  fs::create_directories(dir_ / "references/ann");
  fs::create_directories(dir_ / "references/bob");
  for (const std::string voice : {"ann", "bob"}) write_clip("references/" + voice + "/clip.wav", 2, 0.5f);
  write("references/ann/clip.lab", "Some words.");
  write("references/bob/clip.lab", std::string(70000, 'x'));
  const Outcome outcome = run("voices");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("1 clip, 2.0 s"));
  EXPECT_THAT(outcome.out, HasSubstr("unusable"));
  EXPECT_EQ(run("say Hello -o a.wav --voice built-in").exit_code, 0);
}

TEST_F(Program, NamesOfVoicesMeanWhatTheyMeanOnAServer) {
  ASSERT_EQ(run("say Hello -o own.wav").exit_code, 0);
  ASSERT_EQ(run("say Hello -o ruth.wav --voice ruth").exit_code, 0);
  for (const char* name : {"default", "built-in"}) {
    ASSERT_EQ(run(concat("say Hello -o named.wav --voice ", name)).exit_code, 0);
    EXPECT_EQ(read_file(path("named.wav"), 1 << 20), read_file(path("own.wav"), 1 << 20)) << name;
  }
  ASSERT_EQ(setenv("SHOAL_VOICE_ALIASES", "nova=nobody,nova=ruth,narrator=default", 1), 0);
  ASSERT_EQ(run("say Hello -o nova.wav --voice nova").exit_code, 0);
  EXPECT_EQ(read_file(path("nova.wav"), 1 << 20), read_file(path("ruth.wav"), 1 << 20));
  ASSERT_EQ(run("say Hello -o narrator.wav --voice narrator").exit_code, 0);
  EXPECT_EQ(read_file(path("narrator.wav"), 1 << 20), read_file(path("own.wav"), 1 << 20));
  unsetenv("SHOAL_VOICE_ALIASES");
  expect_users_fault("say Hello -o out.wav --voice Clara", "did you mean clara?");
}

TEST_F(Program, OpenAisVoicesMapToVoicesOfTheModel) {
  ASSERT_EQ(run("say Hello -o nora.wav --voice nora").exit_code, 0);
  ASSERT_EQ(run("say Hello -o nova.wav --voice nova").exit_code, 0);
  EXPECT_EQ(read_file(path("nova.wav"), 1 << 20), read_file(path("nora.wav"), 1 << 20));
  write_clip("ann.wav", 2, 0.5f);
  ASSERT_EQ(run("voices add nova --audio ann.wav --text Words.").exit_code, 0);
  ASSERT_EQ(run("say Hello -o own.wav --voice nova").exit_code, 0);
  EXPECT_NE(read_file(path("own.wav"), 1 << 20), read_file(path("nora.wav"), 1 << 20)) << "yours comes first";
  for (const char* name : {"default", "Built-In"})
    expect_users_fault("voices add " + std::string(name) + " --audio ann.wav --text Words.", "reserved");
}

TEST_F(Program, VoicesCanBeAddedRenamedAndRemoved) {
  write_clip("ann.wav", 2, 0.5f);
  write("ann.txt", "Words of Ann.\n");
  const Outcome added = run("voices add ann --audio ann.wav --text-file ann.txt");
  EXPECT_EQ(added.exit_code, 0);
  EXPECT_THAT(added.out, HasSubstr("1 clip, 2.0 s"));
  EXPECT_EQ(added.err, "");
  EXPECT_EQ(read_file(path("references/ann/sample.wav"), 1 << 20), read_file(path("ann.wav"), 1 << 20));
  EXPECT_EQ(read_file(path("references/ann/sample.lab"), 100), "Words of Ann.");
  EXPECT_THAT(run("voices show ann").out, HasSubstr("sample.wav: Words of Ann."));
  expect_users_fault("voices add ann --audio ann.wav --text Words.", "exists");

  ASSERT_EQ(run("voices rename ann 'Ann Smith'").exit_code, 0);
  expect_users_fault("voices show ann", "ann");
  const Json shown = Json::parse(run("voices show 'Ann Smith' --json").out, "voice");
  EXPECT_EQ(shown.at("id").as_string(), "Ann Smith");
  EXPECT_EQ(shown.at("clips").as_array().at(0).at("transcript").as_string(), "Words of Ann.");
  const Json list = Json::parse(run("voices --json").out, "voices");
  EXPECT_EQ(list.as_array().at(1).at("id").as_string(), "Ann Smith");
  EXPECT_EQ(list.as_array().at(1).at("problem").as_string(), "");

  ASSERT_EQ(run("voices remove 'Ann Smith'").exit_code, 0);
  expect_users_fault("voices remove 'Ann Smith'", "Ann Smith");
  EXPECT_TRUE(fs::is_empty(dir_ / "references"));
  EXPECT_THAT(run("voices").out, HasSubstr("voices add"));
}

TEST_F(Program, VoicesOfTheModelAreListedAndCannotBeRemoved) {
  EXPECT_THAT(run("voices").out, HasSubstr("clara"));
  EXPECT_THAT(run("voices show clara").out, HasSubstr("clip.opus: Good morning"));
  write_clip("ann.wav", 2, 0.5f);
  expect_users_fault("voices add clara --audio ann.wav --text Words.", "came with the model");
  expect_users_fault("voices rename clara ann", "came with the model");
  expect_users_fault("voices remove clara", "came with the model");
}

TEST_F(Program, TheFolderOfVoicesComesFromTheOptionOrTheEnvironment) {
  write_clip("ann.wav", 2, 0.5f);
  ASSERT_EQ(run("voices add ann --audio ann.wav --text Words. --references-dir here/and/there").exit_code, 0);
  EXPECT_TRUE(fs::exists(dir_ / "here/and/there/ann/sample.lab"));
  EXPECT_THAT(run("voices --references-dir here/and/there").out, HasSubstr("1 clip"));
  EXPECT_THAT(run("voices --references-dir here/and/there show ann").out, HasSubstr("Words."));
  ASSERT_EQ(setenv("SHOAL_REFERENCES_DIR", "here/and/there", 1), 0);
  EXPECT_EQ(run("voices show ann").exit_code, 0);
  expect_users_fault("voices show ann --references-dir references", "ann");
  unsetenv("SHOAL_REFERENCES_DIR");
}

TEST_F(Program, BadVoicesAreTheUsersFault) {
  write_clip("clip", 2, 0.5f);
  expect_users_fault("voices add ann --audio clip", "--text");
  expect_users_fault("voices add ann --text Words.", "--audio");
  expect_users_fault("voices add ann --audio clip --text Words. --text-file words.txt", "--text-file");
  expect_users_fault("voices add ann --audio clip --text-file missing.txt", "missing.txt");
  expect_users_fault("voices add ann --audio missing.wav --text Words.", "missing.wav");
  expect_users_fault("voices add ann --audio clip --text ' '", "transcript");
  expect_users_fault("voices add ann --audio clip --text \"$(printf 'caf\\351')\"", "UTF-8");
  expect_users_fault("voices add built-in --audio clip --text Words.", "built-in");
  for (const std::string name : {"../ann", "..", "''", "ann/", "$(head -c 256 /dev/zero | tr '\\0' a)"})
    expect_users_fault("voices add " + name + " --audio clip --text Words.", "letters, digits");
  expect_users_fault("voices remove ../references", "letters, digits");
  expect_users_fault("voices rename nobody somebody", "nobody");
  write_clip("clip", 2, 0);
  expect_users_fault("voices add ann --audio clip --text Words.", "silence");
  write("clip", "this is not sound");
  expect_users_fault("voices add ann --audio clip --text Words.", "not a readable audio file");
  EXPECT_FALSE(fs::exists(dir_ / "references"));
}

TEST_F(Program, TheCacheIsShownAndCleared) {
  const std::string where = " --cache-dir other";
  EXPECT_THAT(run("cache" + where).out, HasSubstr("0 files"));
  fs::create_directories(dir_ / "other/voices/ab");
  write("other/voices/ab/x.codes", "SHOALCOD and so on");
  write("other/voices/ab/mine.txt", "SHOALCOD");
  const Json usage = Json::parse(run("cache --json" + where).out, "usage");
  EXPECT_EQ(usage.at("dir").as_string(), "other");
  EXPECT_EQ(usage.at("files").as_integer(), 1);
  EXPECT_EQ(usage.at("bytes").as_integer(), 18);
  EXPECT_EQ(usage.at("disk_bytes").as_integer(), 4096);
  EXPECT_EQ(usage.at("cache_disk_mb").as_integer(), 256);
  EXPECT_THAT(run("cache" + where).out, HasSubstr("limit 256 MiB"));
  ASSERT_EQ(setenv("SHOAL_CACHE_DISK_MB", "0", 1), 0);
  EXPECT_THAT(run("cache" + where).out, HasSubstr("no limit"));
  ASSERT_EQ(setenv("SHOAL_CACHE_DISK_MB", "-1", 1), 0);
  expect_users_fault("cache" + where, "cache_disk_mb");
  unsetenv("SHOAL_CACHE_DISK_MB");
  EXPECT_THAT(run("cache clear" + where).out, HasSubstr("removed 1 file"));
  EXPECT_FALSE(fs::exists(dir_ / "other/voices/ab/x.codes"));
  EXPECT_TRUE(fs::exists(dir_ / "other/voices/ab/mine.txt"));
  EXPECT_THAT(run("cache clear" + where).out, HasSubstr("removed 0 files"));
  EXPECT_THAT(run("cache --cache-dir none").out, HasSubstr("no cache folder"));
}

TEST_F(Program, AClipIsEncodedOnceForAllRuns) {
  write_clip("ann.wav", 1, 0.5f);
  ASSERT_EQ(run("voices add ann --audio ann.wav --text Words.").exit_code, 0);
  const auto files = [this] {
    return Json::parse(run("cache --json").out, "usage").at("files").as_integer();
  };
  ASSERT_EQ(run("say Hello -o a.wav --voice ann").exit_code, 0);
  EXPECT_EQ(files(), 1);
  ASSERT_EQ(run("say Hello -o b.wav --voice ann").exit_code, 0);
  EXPECT_EQ(files(), 1);
  ASSERT_EQ(run("cache clear").exit_code, 0);
  EXPECT_EQ(files(), 0);
  ASSERT_EQ(run("say Hello -o c.wav --voice ann").exit_code, 0);
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(read_file(path("a.wav"), 1 << 24), read_file(path("b.wav"), 1 << 24));
  EXPECT_EQ(read_file(path("a.wav"), 1 << 24), read_file(path("c.wav"), 1 << 24));
}

}  // namespace
}  // namespace shoal
