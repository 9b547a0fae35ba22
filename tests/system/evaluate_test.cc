// `shoal evaluate` as a black box.
#include "base/json.h"
#include "tests/system/program_testing.h"

namespace shoal {
namespace {

double number(const Json& json, std::initializer_list<const char*> path) {
  const Json* value = &json;
  for (const char* key : path) value = &value->at(key);
  return value->as_number();
}

class Evaluate : public Program {
 protected:
  Json evaluate(const std::string& options) const {
    const Outcome outcome = run("evaluate --device cpu --json - " + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out, "output");
  }
};

TEST_F(Evaluate, OfTheSameThereIsNoDifference) {
  const Json found = evaluate("--precision float32 --sentences 1 --max-frames 40");
  for (const char* heads : {"semantic", "fast"}) {
    EXPECT_GT(number(found, {"logits", heads, "rows"}), 20);
    EXPECT_EQ(number(found, {"logits", heads, "worst_kl"}), 0);
    EXPECT_EQ(number(found, {"logits", heads, "worst_agreement"}), 1);
  }
  for (const char* mode : {"sampled", "greedy"}) {
    EXPECT_EQ(number(found, {mode, "longest"}), 1);
    EXPECT_EQ(number(found, {mode, "shortest"}), 1);
    EXPECT_EQ(number(found, {mode, "worst_mcd_db"}), 0);
  }
}

TEST_F(Evaluate, RoundedWeightsCostALittleAndGatesJudgeIt) {
  const Json found =
      evaluate("--weights int8 --against-precision bfloat16 --sentences 1 --max-frames 20 --no-sound");
  for (const char* heads : {"semantic", "fast"}) {
    EXPECT_GT(number(found, {"logits", heads, "mean_kl"}), 0);
    EXPECT_LT(number(found, {"logits", heads, "mean_kl"}), 1);
  }
  EXPECT_TRUE(found.at("sampled").at("mean_mcd_db").is_null());
  EXPECT_LT(number(found, {"side", "language_model_bytes"}),
            number(found, {"reference", "language_model_bytes"}));
  const std::string same = "evaluate --device cpu --weights int8 --sentences 1 --max-frames 8 --logits-only ";
  EXPECT_EQ(run(same + "--max-kl 10").exit_code, 0);
  const Outcome missed = run(same + "--max-kl 0");
  EXPECT_EQ(missed.exit_code, 1);
  EXPECT_THAT(missed.err, HasSubstr("at most 0"));
  EXPECT_THAT(missed.out, HasSubstr("fast heads"));  // the table all the same
}

TEST_F(Evaluate, AQuantisedFolderIsComparedWithItsOriginalAndBothAreKept) {
  const Outcome made = run("quantize -o narrow --weights int4");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Json found = evaluate("narrow --against '" SHOAL_SOURCE_DIR
                              "/voice' --sentences 1 --max-frames 20 --no-sound --keep-sound kept");
  EXPECT_EQ(found.at("side").at("weights").as_string(), "int4");
  EXPECT_EQ(found.at("reference").at("weights").as_string(), "model");
  EXPECT_GT(number(found, {"logits", "fast", "mean_kl"}), 0);
  for (const char* side : {"side", "reference"}) {
    const std::string lines = read_file(path(concat("kept/", side, "/requests.jsonl")), 1 << 16);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;  // sampled and greedy
    const Json first = Json::parse(lines.substr(0, lines.find('\n')), "line");
    EXPECT_EQ(first.at("outcome").as_string(), "completed");
    const std::string sound =
        read_file(path(concat("kept/", side, "/", first.at("audio").as_string())), 1 << 20);
    EXPECT_TRUE(sound.starts_with("RIFF"));
    EXPECT_GT(sound.size(), 10'000u);  // half a second
  }
  expect_users_fault("evaluate --sentences 1 --keep-sound kept", "holds files");
}

TEST_F(Evaluate, RefusesWhatItCannotCompare) {
  for (const char* side : {"", "--against "})
    expect_users_fault(concat("evaluate ", side, SHOAL_SOURCE_DIR, "/tests/data/kokoro/set_a"),
                       "is a Kokoro model");
  for (const char* option :
       {"--weights fp8 --device cpu", "--against-weights int3", "--max-kl -1", "--max-kl nan",
        "--max-length-ratio 0.5", "random:s1-mini --max-length-ratio 2", "--sentences 0", "--texts nowhere"})
    expect_users_fault(concat("evaluate ", option), "");
  for (const char* option : {"--texts", "--keep-sound", "--json"})
    expect_users_fault(concat("evaluate --sentences 1 ", option, " ''"), "expected a path");
  for (const auto& [bytes, part] : {std::pair<std::string, std::string>{"", "expected a text on each line"},
                                    {"\n \r\n\t\n", "expected a text on each line"},
                                    {"Good.\n\xff\xfe bad\n", "text 2"},
                                    {"Good.\n" + std::string(1001, 'a') + "\n", "text 2: 1001 bytes"}}) {
    write("texts", bytes);
    expect_users_fault("evaluate --texts texts", part);
  }
}

}  // namespace
}  // namespace shoal
