// A folder whose codec is kept in 8 bits speaks as one whose codec has the rounded values.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <map>

#include "base/bf16.h"
#include "base/error_testing.h"
#include "base/file.h"
#include "base/temporary_folder_testing.h"
#include "models/dac/inventory.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/language/speech_model.h"
#include "shoal/model.h"
#include "shoal/quantise.h"
#include "weights/name_maps.h"
#include "weights/quantised.h"
#include "weights/safetensors_layout.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::tiny_config;

class QuantisedCodecFolder : public ::testing::Test {
 protected:
  std::string narrow() const { return folder_.path("narrow"); }
  QuantisationReport quantise(const std::string& from, WeightFormat weights = WeightFormat::automatic) const {
    return quantise_model({.model = from,
                           .output_dir = narrow(),
                           .weights = weights,
                           .codec = CodecWeights::int8,
                           .threads = 2});
  }
  static std::string dir_of(const std::string& model) { return model.empty() ? built_in_voice_dir() : model; }
  static EngineConfig config_of(const std::string& model, Precision precision = Precision::bfloat16) {
    EngineConfig config = tiny_config();
    config.device = "cpu";
    config.model = model;
    config.precision = precision;
    return config;
  }
  static std::vector<float> sound_of(const EngineConfig& config) {
    Engine engine(config);
    engine.start();
    return engine.submit(testing::short_request()).read_all();
  }
  weights::Checkpoint codec_of(const std::string& dir) const {
    weights::Checkpoint codec = weights::Checkpoint::open(weights::find_model_files(dir).codec);
    weights::normalise_codec_names(codec);
    return codec;
  }

  // The original with a codec of the values that the folder's integers stand for, multiplied out here.
  std::string with_values(const std::string& from, bool rounded_to_bf16) {
    const std::string dir = folder_.path("values");
    fs::remove_all(dir);
    fs::copy(dir_of(from), dir, fs::copy_options::recursive);
    const weights::Checkpoint codec = codec_of(narrow());
    const dac::Config config = read_codec_config(weights::find_model_files(narrow()));
    std::map<std::string, int> axes;
    for (const auto& tensor : dac::required_tensors(config, dac::Parts::both))
      if (tensor.outputs_axis)
        axes[tensor.weight_normed ? tensor.name + ".weight" : tensor.name] = *tensor.outputs_axis;
    std::vector<weights::NamedShape> shapes;
    for (const weights::StoredTensor& tensor : codec.tensors())
      if (!tensor.name.ends_with(".scales"))
        shapes.push_back({tensor.name, axes.contains(tensor.name) ? DType::f32 : tensor.view.dtype(),
                          tensor.view.shape()});
    const auto layout = weights::SafetensorsLayout::of(shapes);
    std::string file = layout.header;
    file.resize(static_cast<size_t>(layout.file_bytes));
    for (size_t i = 0; i < shapes.size(); ++i) {
      const TensorView view = *codec.find(shapes[i].name);
      char* const to = file.data() + layout.offsets[i];
      if (!axes.contains(shapes[i].name)) {
        std::memcpy(to, view.data(), static_cast<size_t>(view.bytes()));
        continue;
      }
      const TensorView scales = *codec.find(weights::scales_name(shapes[i].name));
      const int axis = axes[shapes[i].name];
      int64_t inner = 1;
      for (int d = axis + 1; d < view.rank(); ++d) inner *= view.dim(d);
      for (int64_t at = 0; at < view.elements(); ++at) {
        float scale = scales.as<float>()[at / inner % view.dim(axis)];
        if (rounded_to_bf16) scale = round_to_bf16(scale);
        float value = static_cast<float>(view.as<int8_t>()[at]) * scale;
        if (rounded_to_bf16) value = round_to_bf16(value);
        std::memcpy(to + 4 * at, &value, 4);
      }
    }
    std::ofstream(dir + "/codec.safetensors", std::ios::binary) << file;
    return dir;
  }

  const TemporaryFolder folder_;
};

TEST_F(QuantisedCodecFolder, SpeaksOnACpuAsOneOfTheRoundedValues) {
  for (const std::string& from : {tiny_config().model, std::string()}) {
    const QuantisationReport report = quantise(from);
    EXPECT_EQ(report.bytes_after, 0);
    EXPECT_LT(report.codec_bytes_after, report.codec_bytes_before);
    ASSERT_EQ(report.codec_parts.size(), 3u);
    for (const QuantisedLayer& part : report.codec_parts) {
      EXPECT_GT(part.mean_error, 0.0005) << part.name;
      EXPECT_LT(part.worst_error, 0.03) << part.name;
    }
    for (const Precision precision : {Precision::bfloat16, Precision::float32}) {
      const std::string values = with_values(from, precision == Precision::bfloat16);
      const std::vector<float> sound = sound_of(config_of(narrow(), precision));
      EXPECT_EQ(sound, sound_of(config_of(values, precision))) << from;
      EXPECT_NE(sound, sound_of(config_of(from, precision))) << from;
    }
    fs::remove_all(narrow());
  }
}

TEST_F(QuantisedCodecFolder, MayHaveALanguageModelOfFewerBitsToo) {
  for (const WeightFormat weights : {WeightFormat::int8, WeightFormat::int4}) {
    const QuantisationReport report = quantise("", weights);
    EXPECT_LT(report.bytes_after, report.bytes_before);
    EXPECT_GT(report.codec_bytes_after, 0);
    const ModelReport inspected = inspect_model(narrow());
    EXPECT_EQ(inspected.weights, name_of(weights));
    EXPECT_EQ(inspected.codec_weights, "int8");
    EXPECT_EQ(inspected.checkpoints[1].unused_tensors, 0);
    EXPECT_FALSE(inspected.problem);
    EXPECT_FALSE(sound_of(config_of(narrow())).empty());
    fs::remove_all(narrow());
  }
}

TEST_F(QuantisedCodecFolder, LeavesTheLanguageModelAsItWas) {
  quantise("");
  const std::string original = dir_of("");
  const auto stored = weights::Quantisation::read(narrow() + "/config.json");
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->codec);
  EXPECT_FALSE(stored->weights);
  EXPECT_EQ(read_file(weights::find_model_files(original).weights, 1 << 30),
            read_file(weights::find_model_files(narrow()).weights, 1 << 30));
  EXPECT_EQ(inspect_model(narrow()).weights, "");
  EXPECT_EQ(inspect_model(narrow()).precision, inspect_model(original).precision);
  EXPECT_THAT(error_of([&] { quantise_model({.model = narrow(), .output_dir = narrow() + "2"}); }).message(),
              HasSubstr("its codec is int8 already"));
}

TEST_F(QuantisedCodecFolder, IsAskedForByName) {
  const auto refused = [&](const QuantiseOptions& options) {
    return error_of([&] { quantise_model(options); });
  };
  EXPECT_EQ(refused({.output_dir = narrow(), .weights = WeightFormat::automatic}).code(),
            ErrorCode::invalid_argument);
  EXPECT_THAT(refused({.output_dir = narrow(),
                       .weights = WeightFormat::automatic,
                       .codec = CodecWeights::int8,
                       .calibration = "x"})
                  .message(),
              HasSubstr("calibration"));
  EXPECT_THAT(refused({.output_dir = narrow(),
                       .weights = WeightFormat::automatic,
                       .codec = CodecWeights::int8,
                       .group = 64})
                  .message(),
              HasSubstr("group: it is for int4"));
}

// Of a lying configuration, too, in both directions.
TEST_F(QuantisedCodecFolder, IsRefusedAlikeByWhoeverOpensIt) {
  quantise(tiny_config().model);
  const auto expect_refused = [&](const std::string& sentence) {
    const EngineConfig config = config_of(narrow());
    for (const Error& error :
         {error_of([&] { Engine(config).start(); }), error_of([&] { inspect_model(narrow()); }),
          error_of([&] { estimate_memory(config); })})
      EXPECT_THAT(error.message(), HasSubstr(sentence));
  };
  const std::string good = read_file(narrow() + "/config.json", kMaxConfigBytes);
  folder_.write("narrow/config.json",
                std::string(good).replace(good.rfind("\"codec\": \"int8\""), 15, "\"codec\": \"int4\""));
  expect_refused("codec: expected int8");
  folder_.write("narrow/config.json", good.substr(0, good.rfind(",\n \"quantization_config")) + "}");
  expect_refused("which needs a quantization_config");
  folder_.write("narrow/config.json", good);
  const std::string codec = weights::find_model_files(dir_of(tiny_config().model)).codec;
  fs::remove(narrow() + "/codec.safetensors");
  fs::copy(codec, narrow() + "/" + std::string(file_name(codec)));
  expect_refused("expected I8");
}

TEST(CodecWeights, Of8BitsAreRefusedByNameWhereTheyGainNothing) {
  constexpr Device cpu, gpu{DeviceKind::cuda, 0};
  const auto refusal = [](DType operands, Device device) {
    return error_of([&] { codec_format(operands, CodecWeights::int8, false, device); });
  };
  EXPECT_EQ(refusal(DType::bf16, cpu).code(), ErrorCode::unsupported);
  EXPECT_THAT(refusal(DType::bf16, cpu).message(), HasSubstr("on a CPU use auto"));
  EXPECT_THAT(refusal(DType::f32, gpu).message(), HasSubstr("--precision bfloat16"));
  const MatrixFormat narrow{DType::i8, DType::bf16};
  for (const bool stored : {false, true}) {
    EXPECT_EQ(codec_format(DType::bf16, CodecWeights::int8, stored, gpu), narrow);
    EXPECT_EQ(codec_format(DType::bf16, CodecWeights::automatic, stored, cpu), MatrixFormat(DType::bf16));
    EXPECT_EQ(codec_format(DType::f32, CodecWeights::automatic, stored, gpu), MatrixFormat(DType::f32));
  }
  EXPECT_EQ(codec_format(DType::bf16, CodecWeights::automatic, true, gpu), narrow);
  EXPECT_EQ(codec_format(DType::bf16, CodecWeights::automatic, false, gpu), MatrixFormat(DType::bf16));
  EngineConfig config = tiny_config();
  config.device = "cpu";
  config.codec_weights = CodecWeights::int8;
  for (const Error& error :
       {error_of([&] { Engine(config).start(); }), error_of([&] { estimate_memory(config); })}) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("codec_weights: int8"));
  }
}

}  // namespace
}  // namespace shoal::runtime
