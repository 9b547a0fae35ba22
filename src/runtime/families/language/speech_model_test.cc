#include "runtime/families/language/speech_model.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "text/fixtures_testing.h"

namespace shoal::runtime {
namespace {

using ::testing::HasSubstr;

// S2-Pro's published sizes, changed.
void check(const std::function<void(dual_ar::Config&, dac::Config&)>& change) {
  dual_ar::Config language_model = dual_ar::Config::s2_pro();
  dac::Config codec = dac::Config::published();
  change(language_model, codec);
  check_consistency(*text::load_s2_fixture(), language_model, codec, "folder");
}

TEST(SpeechModel, PartsThatFitAreTaken) {
  EXPECT_NO_THROW(check([](auto&, auto&) {}));
  EXPECT_NO_THROW(check([](auto&, dac::Config& codec) { codec.codebook_size = 16; }));
}

TEST(SpeechModel, PartsThatDoNotFitAreRefused) {
  using Change = std::function<void(dual_ar::Config&, dac::Config&)>;
  for (const auto& [change, why] : std::vector<std::pair<Change, std::string>>{
           {[](auto& model, auto&) { model.vocab_size = 5; }, "folder: the tokenizer has "},
           {[](auto& model, auto&) { model.num_codebooks = 9; },
            "writes 9 codebooks, but the codec reads 10"},
           {[](auto& model, auto&) { model.codebook_size = 4095; }, "has codebooks of 4096 entries"},
           // They would never be drawn.
           {[](auto&, auto& codec) { codec.codebook_size = 1025; },
            "has residual codebooks of 1025 entries, but a language model draws from 1024 at most"}}) {
    const Error error = error_of([&] { check(change); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
    EXPECT_THAT(error.message(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace shoal::runtime
