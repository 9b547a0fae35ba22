// The official code's values on the fixtures in the tree, and folders of another shape whose values are the
// plain reference's.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "base/error.h"
#include "models/dual_ar/fixture_folder_testing.h"
#include "tests/parity/lm_parity.h"
#include "tests/parity/sampler_parity.h"
#include "tests/parity/text_parity.h"

namespace shoal::parity {
namespace {

using dual_ar::testing::FixtureFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LmParity : public ::testing::TestWithParam<const char*> {
 protected:
  std::string dir() const { return std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/" + GetParam(); }
};

TEST_P(LmParity, Values) { check_lm_values(dir()); }
TEST_P(LmParity, GreedyStreams) { check_lm_streams(dir()); }
TEST_P(LmParity, Bf16) { check_lm_bf16(dir()); }
TEST_P(LmParity, Samplers) { check_samplers(dir()); }

INSTANTIATE_TEST_SUITE_P(Fixtures, LmParity, ::testing::Values("set_a", "set_s2"),
                         [](const auto& suite) { return std::string(suite.param); });

// If the widths differ, there is a projection between the transformers, and hidden states are stored after
// it.
class LmParityOfWidths : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Fast, LmParityOfWidths, ::testing::Values(64, 96, 130));

TEST_P(LmParityOfWidths, AFastTransformerOfAnotherWidthMatches) {
  const TemporaryFolder folder;
  FixtureFolder(GetParam(), /*seed=*/5).write(folder);
  check_lm_values(folder.path());
  check_lm_streams(folder.path());
  check_lm_bf16(folder.path());
}

// The message of the error that a check throws.
std::string refusal(void (*check)(const std::string&), const TemporaryFolder& folder) {
  try {
    check(folder.path());
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class DamagedFolder : public ::testing::Test {
 protected:
  DamagedFolder() { content_.write(folder_); }
  // Writes the goldens as they have become.
  void write() { content_.write(folder_); }

  TemporaryFolder folder_;
  FixtureFolder content_{64, /*seed=*/5};
};

TEST_F(DamagedFolder, DifferingValuesAreReported) {
  for (const char* name : {"lm.long.hidden_last", "lm.plain.layer1"}) {
    const std::string kept = content_.goldens().at(name).bytes;
    content_.goldens().at(name).bytes[3] ^= 0x01;  // the exponent of the first value
    write();
    EXPECT_NONFATAL_FAILURE(check_lm_values(folder_.path()), name);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    content_.goldens().at(name).bytes.replace(0, sizeof nan, reinterpret_cast<const char*>(&nan), sizeof nan);
    write();
    EXPECT_NONFATAL_FAILURE(check_lm_values(folder_.path()), name);
    content_.goldens().at(name).bytes = kept;
  }
}

// The first, a middle and the last row of a golden.
TEST_F(DamagedFolder, AGoldenMayKeepThreeOfItsRowsButNoOthers) {
  auto& golden = content_.goldens().at("lm.plain.layer1");
  const std::string all = golden.bytes;
  const int64_t rows = golden.shape[0];
  const auto keep = [&](std::initializer_list<int64_t> chosen) {
    const size_t width = all.size() / static_cast<size_t>(rows);
    golden.bytes.clear();
    for (const int64_t row : chosen) golden.bytes += all.substr(static_cast<size_t>(row) * width, width);
    golden.shape = {3, content_.config().slow.dim};
    write();
  };
  ASSERT_GT(rows, 4);
  keep({0, (rows - 1) / 2, rows - 1});
  check_lm_values(folder_.path());
  for (const auto others : {std::initializer_list<int64_t>{0, 1, rows - 1}, {0, (rows - 1) / 2, rows - 2}}) {
    keep(others);
    EXPECT_NONFATAL_FAILURE(check_lm_values(folder_.path()), "lm.plain.layer1");
  }
}

TEST_F(DamagedFolder, ADifferingStreamIsReported) {
  const char* const name = "lm.plain.greedy_rp1.5_tokens";
  content_.goldens().at(name).bytes[0] ^= 0x01;
  write();
  EXPECT_NONFATAL_FAILURE(check_lm_streams(folder_.path()), name);
}

TEST_F(DamagedFolder, AMissingGoldenIsReported) {
  content_.goldens().remove("lm.plain.embed");
  write();
  EXPECT_NONFATAL_FAILURE(check_lm_values(folder_.path()), "no golden lm.plain.embed");
}

TEST_F(DamagedFolder, AGoldenOfAnotherShapeIsReported) {
  content_.goldens().at("lm.plain.prompt").shape = {11, 6};
  write();
  EXPECT_THAT(
      refusal(check_lm_values, folder_),
      AllOf(HasSubstr("lm_goldens.safetensors: golden lm.plain.prompt"), HasSubstr("expected 6 rows")));
}

TEST_F(DamagedFolder, AGoldenOfAnotherDtypeIsReported) {
  content_.goldens().at("lm.plain.embed").dtype = DType::i32;
  write();
  EXPECT_THAT(refusal(check_lm_values, folder_), HasSubstr("golden lm.plain.embed: I32, expected F32"));
}

TEST_F(DamagedFolder, ATruncatedFileIsReported) {
  const std::string path = folder_.path("lm_goldens.safetensors");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_THAT(refusal(check_lm_values, folder_), HasSubstr(path));
}

TEST_F(DamagedFolder, WithoutATokenizerTheIdsAreUnknown) {
  std::filesystem::remove(folder_.path("tokenizer.tiktoken"));
  EXPECT_THAT(refusal(check_lm_streams, folder_), HasSubstr("no tokenizer.tiktoken or tokenizer.json"));
}

// The folder has neither texts nor samplers, and ids in no document.
TEST_F(DamagedFolder, AbsentGoldensAreCounted) {
  ::testing::internal::CaptureStdout();
  check_tokenizer(folder_.path());
  check_prompts(folder_.path());
  check_splits(folder_.path());
  check_samplers(folder_.path());
  check_lm_bf16(folder_.path());
  const std::string report = ::testing::internal::GetCapturedStdout();
  for (const char* line :
       {"tokenizer: ids: tried nothing (0 values); absent: 3, special_ids, semantic_begin_id, "
        "semantic_end_id",
        "tokenizer: texts: tried nothing (0 values); absent: 1, tokenizer cases",
        "prompts: plain: tried nothing (0 values); absent: 1, text",
        "splits: dialogues: tried nothing (0 values); absent: 1, splits",
        "samplers: sampler: tried nothing (0 values); absent: 1, sampler cases",
        "language model, bf16: plain: tried slow_logits_all, fast_logits_tf (6464 values); absent: 2, "
        "bf16.slow_logits_all, bf16.fast_logits_tf"})
    EXPECT_THAT(report, HasSubstr(line));
}

}  // namespace
}  // namespace shoal::parity
