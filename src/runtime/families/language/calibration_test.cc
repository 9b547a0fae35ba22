#include "runtime/families/language/calibration.h"

#include <filesystem>
#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "base/file.h"
#include "base/temporary_folder_testing.h"
#include "runtime/engine/engine_testing.h"
#include "shoal/quantise.h"

namespace shoal::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::tiny_config;

class CalibratedModel : public ::testing::Test {
 protected:
  std::string written(std::string_view text) const { return folder_.write("sentences.txt", text); }
  QuantisationReport quantise(const std::string& to, QuantiseOptions options) const {
    options.output_dir = folder_.path(to);
    return quantise_model(options);
  }
  std::string weights(const std::string& of) const {
    return read_file(folder_.path(of) + "/model.safetensors", 1 << 26);
  }

  const TemporaryFolder folder_;
};

TEST_F(CalibratedModel, ReadsOneSentenceALine) {
  EXPECT_THAT(read_calibration_sentences(written("One.\r\n\n \t\n...\nTwo, f\xc3\xbcr\t2.")),
              ElementsAre("One.", "Two, f\xc3\xbcr\t2."));
}

TEST_F(CalibratedModel, RefusesFilesThatAreNone) {
  const auto refused = [&](std::string_view text, ErrorCode code, const std::string& named) {
    const Error error = error_of([&] { read_calibration_sentences(written(text)); });
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(named));
  };
  for (const char* none : {"", "\n", " \r\n\t\n", "...\n!\n"})
    refused(none, ErrorCode::invalid_argument, "sentences.txt: expected sentences");
  for (const char* bad : {"One.\n\xff\xfe", "One.\ncaf\xe9\n", "One.\n\xed\xa0\x80"})
    refused(bad, ErrorCode::invalid_argument, "line 2: not valid UTF-8");
  for (const std::string_view bad :
       {std::string_view("One.\nTw\0o", 9), std::string_view("One.\n\x1b[31mTwo"),
        std::string_view("One.\nTwo\x7f")})
    refused(bad, ErrorCode::invalid_argument, "line 2: expected text, found a control character");
  refused("One.\n" + std::string(401, 'a'), ErrorCode::too_large, "line 2: 401 bytes");
  std::string many;
  for (int i = 0; i < 256; ++i) many += "Go.\n";
  EXPECT_EQ(read_calibration_sentences(written(many)).size(), 256u);
  refused(many + "Go.", ErrorCode::too_large, "line 257");
  refused(std::string((64 << 10) + 1, '\n'), ErrorCode::too_large, "sentences.txt");
  EXPECT_EQ(error_of([&] { read_calibration_sentences(folder_.path("none.txt")); }).code(),
            ErrorCode::not_found);
  EXPECT_EQ(error_of([&] { read_calibration_sentences(folder_.path()); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(CalibratedModel, HasProductsThatAreNearerAndTheSameEveryTime) {
  const std::string sentences =
      written("The ship sails at noon.\nWho left the window open?\nNine red boats.");
  for (const WeightFormat format : {WeightFormat::int4, WeightFormat::int8}) {
    const std::string name = format == WeightFormat::int4 ? "four" : "eight";
    QuantiseOptions options{.weights = format, .threads = 1};
    const QuantisationReport alone = quantise(name + "-alone", options);
    options.calibration = sentences;
    const QuantisationReport made = quantise(name, options);
    EXPECT_EQ(made.bytes_after, alone.bytes_after);
    ASSERT_EQ(made.layers.size(), alone.layers.size());
    for (size_t i = 0; i < made.layers.size(); ++i) {
      const QuantisedLayer& layer = made.layers[i];
      EXPECT_EQ(layer.name, alone.layers[i].name);
      EXPECT_GT(layer.output_error, 0) << layer.name;
      EXPECT_LT(layer.output_error, 0.9 * layer.output_error_before) << layer.name;
      EXPECT_EQ(alone.layers[i].output_error_before, 0) << layer.name;
    }
    EXPECT_NE(weights(name), weights(name + "-alone"));
    if (format == WeightFormat::int4) {
      options.threads = 2;
      quantise(name + "-again", options);
      EXPECT_EQ(weights(name), weights(name + "-again"));
    }
    EngineConfig config = tiny_config();
    config.model = folder_.path(name), config.device = "cpu";
    Engine engine(config);
    engine.start();
    EXPECT_FALSE(engine.submit(testing::short_request()).read_all().empty());
  }
}

TEST_F(CalibratedModel, TakesAnyLanguageModelAndLeavesNothingWhenItFails) {
  const std::string sentences = written("One.\nTwo.");
  const std::string s2 = folder_.path("original");
  std::filesystem::copy(std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_s2", s2);
  folder_.write("original/codec.pth", "copied");
  const QuantisationReport made = quantise("s2", {.model = s2, .calibration = sentences, .threads = 1});
  for (const QuantisedLayer& layer : made.layers)
    EXPECT_LE(layer.output_error, layer.output_error_before) << layer.name;
  const auto before = folder_.tree();
  const std::string empty = folder_.path("none.txt");
  EXPECT_EQ(error_of([&] { quantise("new", {.calibration = empty}); }).code(), ErrorCode::not_found);
  int left = 2;
  const auto stop = [&](double share, const std::string&) { return share <= 1 && --left > 0; };
  EXPECT_EQ(error_of([&] {
              quantise_model({.output_dir = folder_.path("new"), .calibration = sentences, .threads = 1},
                             stop);
            }).code(),
            ErrorCode::cancelled);
  EXPECT_EQ(folder_.tree(), before);
}

}  // namespace
}  // namespace shoal::runtime
