// The program as its users meet it: arguments in; files, messages and exit codes out.
#include "audio/clip.h"
#include "base/json.h"
#include "tests/system/program_testing.h"

namespace shoal {
namespace {

using ::testing::Not;

TEST_F(Program, SpeakingTwiceGivesTheSameSound) {
  ASSERT_EQ(run("say 'Hello there.' -o one.wav").exit_code, 0);
  ASSERT_EQ(run("say 'Hello there.' -o two.wav --threads 1").exit_code, 0);
  EXPECT_EQ(read_file(path("one.wav"), 1 << 24), read_file(path("two.wav"), 1 << 24));
  const audio::Clip clip = audio::read_clip(path("one.wav"));
  EXPECT_EQ(clip.sample_rate_hz, 16000);
  EXPECT_GT(clip.seconds(), 0.4);
  EXPECT_LT(clip.seconds(), 3.0);
  EXPECT_FALSE(audio::is_silent(clip.samples));
}

TEST_F(Program, IsQuietInAPipeAndPrintsJsonOnRequest) {
  const Outcome quiet = run("say 'Hello there.' -o one.wav");
  EXPECT_EQ(quiet.out + quiet.err, "");
  const Outcome json = run("say 'Hello there.' -o one.wav --json");
  const Json summary = Json::parse(json.out, "summary");
  EXPECT_EQ(summary.at("model").as_string(), "built-in");
  EXPECT_GT(summary.at("frames").as_integer(), 5);
  EXPECT_GT(summary.at("audio_s").as_number(), 0.3);
  EXPECT_EQ(json.err, "");
}

TEST_F(Program, StandardOutputCarriesTheSamples) {
  ASSERT_EQ(run("say 'Hello there.' -o one.pcm").exit_code, 0);
  const Outcome piped = run("say - -o - --format pcm", "Hello there.");
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_EQ(piped.out, read_file(path("one.pcm"), 1 << 24));
  ASSERT_EQ(run("say 'Hello there.' -o two.pcm --stream").exit_code, 0);
  EXPECT_EQ(piped.out, read_file(path("two.pcm"), 1 << 24));
}

TEST_F(Program, EveryFormatIsReadable) {
  for (const std::string format : {"wav", "flac", "opus", "mp3"}) {
    SCOPED_TRACE(format);
    ASSERT_EQ(run("say 'Hello there.' -o one." + format).exit_code, 0);
    const audio::Clip clip = audio::read_clip(path("one." + format));
    EXPECT_FALSE(audio::is_silent(clip.samples));
    EXPECT_GT(clip.seconds(), 0.4);
  }
}

TEST_F(Program, FollowsAReferenceAndANamedVoice) {
  fs::create_directories(dir_ / "references/ann");
  ASSERT_EQ(run("say 'The window was open all night.' -o references/ann/clip.wav --seed 5").exit_code, 0);
  write("references/ann/clip.lab", "The window was open all night.");
  const std::string words = "say 'Close the door, please.' --top-p 0 ";
  ASSERT_EQ(
      run(words +
          "-o a.wav --reference references/ann/clip.wav --reference-text 'The window was open all night.'")
          .exit_code,
      0);
  ASSERT_EQ(run(words + "-o b.wav --voice ann").exit_code, 0);
  ASSERT_EQ(run(words + "-o c.wav").exit_code, 0);
  EXPECT_EQ(read_file(path("a.wav"), 1 << 24), read_file(path("b.wav"), 1 << 24));
  EXPECT_NE(read_file(path("a.wav"), 1 << 24), read_file(path("c.wav"), 1 << 24));
  EXPECT_THAT(run("voices").out, HasSubstr("ann"));
}

TEST_F(Program, WordsWithoutQuotesAreOneText) {
  ASSERT_EQ(run("say 'Hello there.' -o one.wav").exit_code, 0);
  ASSERT_EQ(run("say -o two.wav Hello there.").exit_code, 0);
  EXPECT_EQ(read_file(path("one.wav"), 1 << 24), read_file(path("two.wav"), 1 << 24));
  EXPECT_EQ(run("normalize '[Room 5, please]'").out, "[Room five, please]\n");
  EXPECT_EQ(run("normalize Room -- -5").out, "Room minus five\n");
  expect_users_fault("say Hello -o out.wav there.", "say \"Hello there.\"");
  expect_users_fault("say Hello - -o out.wav", "in several places", "there.");
}

TEST_F(Program, ATextThatIsSentInNeedsNoDash) {
  EXPECT_EQ(run("normalize", "Room 207.").out, "Room two hundred seven.\n");
  EXPECT_EQ(run_shell("printf 'Room 207.' | $SHOAL normalize").out, "Room two hundred seven.\n");
  const Outcome nobody = run_shell("$SHOAL normalize </dev/null");
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("expected something to say"));
}

TEST_F(Program, OggIsTheFileOfOpus) {
  ASSERT_EQ(run("say Hello -o one.opus").exit_code, 0);
  ASSERT_EQ(run("say Hello -o two --format ogg").exit_code, 0);
  EXPECT_EQ(read_file(path("one.opus"), 1 << 24), read_file(path("two"), 1 << 24));
}

TEST_F(Program, NormalizeShowsTheWordsThatAreSpoken) {
  EXPECT_EQ(run("normalize 'It costs $20 at 8:30.'").out, "It costs twenty dollars at eight thirty.\n");
  EXPECT_EQ(run("normalize -", "Room 207.").out, "Room two hundred seven.\n");
  expect_users_fault("normalize \"$(printf 'caf\\351')\"", "UTF-8");
}

TEST_F(Program, AnUnspeakableTextIsAShortSilenceWithAWarning) {
  const Outcome outcome = run("say '?!... 🎉' -o out.wav");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("shoal: text: there is nothing in it that can be spoken"));
  const audio::Clip clip = audio::read_clip(path("out.wav"));
  EXPECT_TRUE(audio::is_silent(clip.samples));
  EXPECT_NEAR(clip.seconds(), 0.2, 0.001);
}

TEST_F(Program, BadTextIsTheUsersFault) {
  expect_users_fault("say '' -o out.wav", "text:");
  expect_users_fault("say ' ' -o out.wav", "text:");
  expect_users_fault("say - -o out.wav", "text:", std::string(1 << 20, 'a'));
  expect_users_fault("say - -o out.wav", "UTF-8", "caf\xe9 is latin-1");
  expect_users_fault("say --file missing.txt -o out.wav", "missing.txt");
  write("big.txt", std::string(1 << 20, 'a'));
  expect_users_fault("say --file big.txt -o out.wav", "big.txt");
}

TEST_F(Program, BadOptionsAreTheUsersFault) {
  expect_users_fault("say Hello", "-o FILE");
  expect_users_fault("say Hello -o out.wav --no-such-option", "no-such-option");
  expect_users_fault("say Hello -o out.xyz", "format:");
  expect_users_fault("say Hello -o nowhere/out.wav", "nowhere");
  expect_users_fault("say Hello -o out.wav --temperature 9", "temperature");
  expect_users_fault("say Hello -o out.wav --temperature nan", "temperature");
  expect_users_fault("say Hello -o out.wav --top-p 1.5", "top_p");
  expect_users_fault("say Hello -o out.wav --seed -1", "seed");
  expect_users_fault("say Hello -o out.wav --seed 9223372036854775808", "0 to 9223372036854775807");
  expect_users_fault("say Hello -o out.wav --max-new-tokens -3", "max_new_tokens");
  expect_users_fault("say Hello -o out.wav --chunk-length 3", "chunk_length");
  expect_users_fault("say Hello -o out.wav --precision float16 --device cpu", "float16");
  expect_users_fault("say Hello -o out.wav --device gpu", "cuda:N");
  expect_users_fault("say Hello -o out.wav --device mps", "Apple");
  expect_users_fault("say Hello -o out.wav --threads -2", "threads");
  expect_users_fault("say Hello -o out.wav --model nowhere", "nowhere");
  fs::create_directories(dir_ / "empty_model");
  expect_users_fault("say Hello -o out.wav --model empty_model", "empty_model");
  expect_users_fault("", "expected a command");
  expect_users_fault("sing Hello", "unknown command sing");
}

TEST_F(Program, BadReferencesAreTheUsersFault) {
  const std::string say = "say Hello -o out.wav --reference clip --reference-text 'Some words.'";
  expect_users_fault(say, "clip");  // not there
  write("clip", "this is not sound");
  expect_users_fault(say, "clip");
  write_clip("clip", 2, 0);
  expect_users_fault(say, "silence");
  write_clip("clip", 600, 0.5f);
  expect_users_fault(say, "120");
  write_clip("clip", 0.05, 0.5f);
  expect_users_fault(say, "clip");
  write_clip("clip", 2, 0.5f);
  expect_users_fault("say Hello -o out.wav --reference clip", "reference-text");
  expect_users_fault("say Hello -o out.wav --reference clip --reference-text ' '", "transcript");
  expect_users_fault("say Hello -o out.wav --voice nobody", "nobody");
  expect_users_fault("say Hello -o out.wav --voice ../../etc", "voice");
}

TEST_F(Program, AnInterruptLeavesNoFileAndSaysSo) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "And on and on it goes, with no end in sight. ";
  write("long.txt", text);
  // A background job of a plain shell ignores SIGINT from the start: SIGTERM takes the same path.
  const std::string command = "cd '" + dir_.string() +
                              "'; '" SHOAL_PROGRAM
                              "' say --file long.txt -o out.wav 2>stderr & child=$!; "
                              "for i in $(seq 600); do ls .shoal* >/dev/null 2>&1 && break; sleep 0.1; done; "
                              "kill -TERM $child; wait $child";
  const int status = std::system(command.c_str());
  const Outcome outcome{WEXITSTATUS(status), "", read_file(path("stderr"), 1 << 20)};
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("cancelled"));
  for (const fs::directory_entry& entry : fs::directory_iterator(dir_)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with("out") || name.starts_with(".shoal")) << "left behind: " << name;
  }
}

TEST_F(Program, MessagesGoToStandardErrorAndChangeNothingElse) {
  write_clip("ann.wav", 1, 0.5f);
  ASSERT_EQ(run("voices add ann --audio ann.wav --text Words.").exit_code, 0);
  ASSERT_EQ(run("say Hello -o a.wav --voice ann").exit_code, 0);
  const auto damage = [this] {
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / "cache")) {
      if (!entry.is_regular_file()) continue;
      fs::permissions(entry.path(), fs::perms::owner_all);
      fs::resize_file(entry.path(), 50);
    }
  };
  damage();
  const Outcome warned = run("say Hello -o b.wav --voice ann");
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_EQ(warned.out, "");
  EXPECT_TRUE(warned.err.starts_with("shoal: warning: voice cache: ")) << warned.err;
  EXPECT_EQ(std::count(warned.err.begin(), warned.err.end(), '\n'), 1) << warned.err;
  EXPECT_EQ(read_file(path("a.wav"), 1 << 24), read_file(path("b.wav"), 1 << 24));
  damage();
  EXPECT_EQ(run("say Hello -o b.wav --voice ann --quiet").err, "");
  damage();
  ASSERT_EQ(setenv("SHOAL_LOG_LEVEL", "error", 1), 0);
  EXPECT_EQ(run("say Hello -o b.wav --voice ann").err, "");
  ASSERT_EQ(setenv("SHOAL_LOG_LEVEL", "loud", 1), 0);
  expect_users_fault("say Hello -o out.wav", "SHOAL_LOG_LEVEL: expected debug, info, warning or error");
  EXPECT_EQ(run("say --help").exit_code, 0);
  unsetenv("SHOAL_LOG_LEVEL");
}

TEST_F(Program, AWrongVoiceFolderIsNotReplacedByAnother) {
  ASSERT_EQ(setenv("SHOAL_VOICE_DIR", "/nowhere/voice", 1), 0);
  expect_users_fault("say Hello -o out.wav", "SHOAL_VOICE_DIR");
  unsetenv("SHOAL_VOICE_DIR");
}

TEST_F(Program, AFailedWriteLeavesTheOlderFileAndIsOurFault) {
  write("out.wav", "older");
  EXPECT_EQ(run("say Hello -o /dev/full --format pcm").exit_code, 1);
  EXPECT_EQ(run("say '' -o out.wav").exit_code, 2);
  EXPECT_EQ(read_file(path("out.wav"), 100), "older");
}

TEST_F(Program, QuantizeWritesAFolderThatSpeaks) {
  const Outcome made = run("quantize -o small");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("fast_layers.1"));
  EXPECT_THAT(run("inspect small").out, HasSubstr("weights: int8"));
  EXPECT_THAT(run("say Hello --model small -o small.wav --json").out, HasSubstr("\"weights\": \"int8\""));
  EXPECT_EQ(run("say Hello --weights int8 -o same.wav").exit_code, 0);
  EXPECT_EQ(read_file(path("small.wav"), 1 << 20), read_file(path("same.wav"), 1 << 20));
  EXPECT_EQ(run("quantize -o four --mode int4").exit_code, 0);
  EXPECT_THAT(run("inspect four").out, HasSubstr("weights: int4, of the layers' matrices, in groups of 64"));
  EXPECT_EQ(run("say Hello --model four -o four.wav --device cpu").exit_code, 0);
  EXPECT_EQ(run("say Hello --device cpu --runtime-int4 -o same.wav").exit_code, 0);
  EXPECT_EQ(read_file(path("four.wav"), 1 << 20), read_file(path("same.wav"), 1 << 20));
  write("sentences.txt", "The ship sails at noon.\nNine red boats.\n");
  write("blank.txt", "\n");
  const Outcome calibrated = run("quantize -o near --mode int4 --calibrate sentences.txt");
  EXPECT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, HasSubstr("outputs: uncalibrated, calibrated"));
  EXPECT_EQ(run("say Hello --model near -o near.wav --device cpu").exit_code, 0);
  EXPECT_NE(read_file(path("near.wav"), 1 << 20), read_file(path("four.wav"), 1 << 20));
  for (const char* refused :
       {"-o small", "-o new --calibrate none.txt", "-o new --calibrate blank.txt", "-o new --calibrate ''",
        "-o new --mode int2", "-o new --group 64", "-o new --weights fp8 --calibrate sentences.txt",
        "-o new --mode int4 --group 48", "small -o new", "random:s1-mini -o new"})
    EXPECT_EQ(run(concat("quantize ", refused)).exit_code, 2) << refused;
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(Program, InspectShowsPartsAndNamesWhatIsMissing) {
  const Outcome whole = run("inspect");
  EXPECT_EQ(whole.exit_code, 0);
  EXPECT_THAT(whole.out, HasSubstr("nothing is missing"));
  const std::string set = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a";
  const Json report = Json::parse(run("inspect --json --tensors '" + set + "'").out, "report");
  EXPECT_EQ(report.at("language_model").at("problems").as_array().size(), 0u);
  // One layer more than the file holds.
  for (const char* file :
       {"model.pth", "codec.pth", "codec_config.json", "tokenizer.tiktoken", "special_tokens.json"}) {
    fs::create_directories(dir_ / "broken");
    fs::copy_file(set + "/" + file, dir_ / "broken" / file);
  }
  std::string config = read_file(set + "/config.json", 1 << 20);
  const std::string layers = "\"n_layer\": 3";
  ASSERT_NE(config.find(layers), std::string::npos);
  config.replace(config.find(layers), layers.size(), "\"n_layer\": 4");
  write("broken/config.json", config);
  const Outcome broken = run("inspect broken");
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.out, HasSubstr("PROBLEM layers.3.attention_norm.weight is missing, expected [64]"));
  expect_users_fault("say Hello -o out.wav --model broken", "layers.3");
}

TEST_F(Program, InspectPlansTheMemoryOfAConfiguration) {
  const auto plan = [&](const std::string& options) {
    return Json::parse(run("inspect random:s1-mini --memory --json --device cpu " + options).out, "plan");
  };
  const Json few = plan("--max-batch-size 4"), many = plan("--max-batch-size 64");
  EXPECT_EQ(few.at("precision").as_string(), "bfloat16");
  // 440 million parameters in 16 bits.
  EXPECT_NEAR(few.at("bytes").at("language model, slow layers").as_number(), 0.88e9, 0.01e9);
  EXPECT_GT(many.at("bytes").at("codec streams").as_number(),
            10 * few.at("bytes").at("codec streams").as_number());
  EXPECT_GT(plan("--max-batch-size 4 --precision float32").at("total_bytes").as_number(),
            few.at("total_bytes").as_number());
  const auto kokoro = [&](const std::string& options) {
    return Json::parse(run("inspect random:kokoro --memory --json --device cpu " + options).out, "plan");
  };
  // ("auto" takes another precision on other CPUs.)
  const Json alone = kokoro("--max-batch-size 1 --max-batch-frames 8000 --precision float32");
  EXPECT_NEAR(alone.at("bytes").at("generator").as_number(), 78.6e6, 1e6);
  EXPECT_GT(
      kokoro("--max-batch-size 4 --max-batch-frames 8000 --precision float32").at("batch_frames").as_number(),
      3 * alone.at("batch_frames").as_number());
  EXPECT_LT(
      kokoro("--max-batch-size 1 --max-batch-frames 8000 --precision bfloat16").at("total_bytes").as_number(),
      alone.at("total_bytes").as_number());
  const Outcome table = run("inspect --memory --device cpu");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("KV pages"), HasSubstr("free now"), HasSubstr("codec streams")));
  EXPECT_EQ(table.err, "");
  expect_users_fault("inspect --memory --device cpu --precision float16", "float16 needs a GPU");
}

TEST_F(Program, TheEnvironmentSpeaksOldAndNewNames) {
  ASSERT_EQ(setenv("S1_MINI_DEVICE", "cpu", 1), 0);
  EXPECT_EQ(run("say Hello -o one.wav").exit_code, 0);
  ASSERT_EQ(setenv("SHOAL_DEVICE", "auto", 1), 0);
  expect_users_fault("say Hello -o out.wav", "S1_MINI_DEVICE");
  unsetenv("S1_MINI_DEVICE");
  unsetenv("SHOAL_DEVICE");
  ASSERT_EQ(setenv("S1_MINI_PRECISION", "float16", 1), 0);
  expect_users_fault("say Hello -o out.wav --device cpu", "float16");
  unsetenv("S1_MINI_PRECISION");
}

TEST_F(Program, ReadySaysThatNobodyListens) {
  EXPECT_EQ(run("ready 127.0.0.1:1").exit_code, 1);
  EXPECT_THAT(run("ready 127.0.0.1:1").err, HasSubstr("no answer from 127.0.0.1:1"));
  for (const std::string address : {"nonsense", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "[::1]:80"})
    EXPECT_EQ(run("ready " + address).exit_code, 2) << address;
}

TEST_F(Program, HelpHasExamples) {
  EXPECT_THAT(run("--help").out, HasSubstr("say"));
  EXPECT_THAT(run("say --help").out, HasSubstr("Examples"));
  EXPECT_THAT(run("voices --help").out, HasSubstr("Examples"));
  EXPECT_THAT(run("voices add --help").out, HasSubstr("Examples"));
  EXPECT_THAT(run("cache --help").out, HasSubstr("Examples"));
  for (const char* command : {"serve", "doctor"}) {
    const std::string first = run(concat(command, " --help")).out,
                      all = run(concat(command, " --help-all")).out;
    EXPECT_THAT(first, AllOf(HasSubstr("--model "), HasSubstr("Example"), Not(HasSubstr("--kv-page-size"))));
    EXPECT_LT(std::count(first.begin(), first.end(), '\n'), 50) << "one screen";
    EXPECT_THAT(all, AllOf(HasSubstr("--model "), HasSubstr("Example"), HasSubstr("--kv-page-size")));
  }
  EXPECT_EQ(run("help say").out, run("say --help").out);
  EXPECT_EQ(run("version").out, run("--version").out);
  EXPECT_THAT(run("--version").out,
              MatchesRegex("shoal [0-9]+\\.[0-9]+\\.[0-9]+\ncommit [0-9a-z-]+\n.*CUDA.*\n"));
}

}  // namespace
}  // namespace shoal
