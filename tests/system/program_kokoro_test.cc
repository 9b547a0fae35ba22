// The program with a Kokoro model folder.
#include "base/json.h"
#include "models/kokoro/voice_testing.h"
#include "tests/system/program_testing.h"

namespace shoal {
namespace {

class KokoroProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    const std::string set = std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a/";
    folder_.write("m/voices/af_one.bin", kokoro::raw_voice(kokoro::VoicePack::random(1)));
    folder_.write("m/voices/bf_two.bin", kokoro::raw_voice(kokoro::VoicePack::random(2)));
    for (const char* file : {"config.json", "kokoro-v1_0.pth"})
      fs::create_symlink(set + file, dir_ / "m" / file);
    folder_.write("words/us_gold.json", R"({"hello": "həlˈO", "there": "ðˈɛɹ"})");
  }
};

TEST_F(KokoroProgram, SaysPhonemesAndWords) {
  const Outcome text =
      run("say 'Hello there.' --model m --voice 'af_one(2)+bf_two' --speed 1.5 --dictionaries-dir words -o "
          "out.wav --json");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const Json summary = Json::parse(text.out, "summary");
  EXPECT_EQ(summary.at("model").as_string(), "m");
  EXPECT_EQ(summary.at("sample_rate_hz").as_integer(), 24000);
  EXPECT_GT(summary.at("audio_s").as_number(), 0.1);
  const std::string whole = read_file(path("out.wav"), 1 << 24);
  EXPECT_EQ(run("say 'həlˈO ðˈɛɹ.' --phonemes --model m --voice 'af_one(2)+bf_two' --speed 1.5 -o same.wav")
                .exit_code,
            0);
  EXPECT_EQ(read_file(path("same.wav"), 1 << 24), whole);
  const Outcome streamed =
      run("say 'Hello there.' --model m --voice 'af_one(2)+bf_two' --speed 1.5 --dictionaries-dir words -o - "
          "--format pcm");
  ASSERT_GT(streamed.out.size(), 1000u);
  EXPECT_TRUE(whole.ends_with(streamed.out));
  const Outcome dropped = run("say 'həlˈO¿' --phonemes --model m --lang b -o b.wav");
  EXPECT_EQ(dropped.exit_code, 0);
  EXPECT_THAT(dropped.err, HasSubstr("U+00BF"));
}

TEST_F(KokoroProgram, RefusesByName) {
  expect_users_fault("say Hello --model m --voice af_hone -o out.wav", "did you mean af_one?");
  expect_users_fault("say Hello --model m --lang xx -o out.wav", "language");
  expect_users_fault("say Hello --model m --speed 0 -o out.wav", "speed: expected 0.25 to 4, got 0");
  expect_users_fault("say Hello --model m --top-p 0.5 --strict -o out.wav", "top_p");
  expect_users_fault("say 'həlˈO¿' --phonemes --strict-phonemes --model m -o out.wav", "U+00BF");
  expect_users_fault("say '' --model m -o out.wav", "text: expected something to say, got nothing");
  expect_users_fault("say Hello --speed 5 -o out.wav", "speed: expected 0.25 to 4, got 5");
  expect_users_fault("say Hello --no-trim-joins --strict -o out.wav", "trim_joins: this model");
  expect_users_fault("say Hello --phonemes -o out.wav", "phonemes: this model reads text");
  expect_users_fault("voices --model words", "no voices of its own");
  expect_users_fault("phonemize ''", "text: expected at least one letter");
  expect_users_fault("phonemize -", "text: not valid UTF-8 (byte 0)", "\x93Hello\x94");
  expect_users_fault("phonemize hello --lang j", "send phonemes instead");
}

TEST_F(KokoroProgram, ListsAndInspectsItsVoices) {
  const Outcome voices = run("voices --model m");
  EXPECT_EQ(voices.exit_code, 0) << voices.err;
  EXPECT_THAT(voices.out, AllOf(HasSubstr("af_one"), HasSubstr("en-gb")));
  EXPECT_EQ(Json::parse(run("voices --model m --json").out, "voices").as_array().size(), 2u);
  const Outcome inside = run("inspect m");
  EXPECT_EQ(inside.exit_code, 0) << inside.err;
  EXPECT_THAT(inside.out,
              AllOf(HasSubstr("nothing is missing"), HasSubstr("af_one bf_two"), HasSubstr("114 phonemes")));
  EXPECT_EQ(Json::parse(run("inspect m --json").out, "report").at("family").as_string(), "kokoro");
  std::string config = read_file(path("m/config.json"), 1 << 20);
  const size_t at = config.find("\"hidden_dim\": 48");
  ASSERT_NE(at, std::string::npos);
  fs::remove(path("m/config.json"));
  write("m/config.json", config.replace(at, 16, "\"hidden_dim\": 64"));
  const Outcome broken = run("inspect m");
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.out + broken.err, HasSubstr("expected ["));
}

TEST_F(KokoroProgram, PhonemizesByDictionary) {
  const Outcome words = run("phonemize 'Hello there! [pause:1.5s] Hello.' --dictionaries-dir words --words");
  EXPECT_EQ(words.exit_code, 0) << words.err;
  EXPECT_THAT(words.out,
              AllOf(HasSubstr("həlˈO ðˈɛɹ!\n"), HasSubstr("[pause:1.5s]\n"), HasSubstr("Hello  ")));
  const Json json =
      Json::parse(run("phonemize - --json --dictionaries-dir words", "hello there").out, "json");
  EXPECT_EQ(json.at("chunks").as_array().at(0).at("phonemes").as_string(), "həlˈO ðˈɛɹ");
}

}  // namespace
}  // namespace shoal
