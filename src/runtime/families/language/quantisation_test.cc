// The folder that quantise_model writes is the model that WeightFormat makes while loading.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/json.h"
#include "base/temporary_folder_testing.h"
#include "models/dual_ar/inventory.h"
#include "runtime/engine/engine_testing.h"
#include "shoal/model.h"
#include "shoal/quantise.h"
#include "weights/checkpoint.h"
#include "weights/quantised.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::tiny_config;

class QuantisedModel : public ::testing::Test {
 protected:
  std::string model() const { return folder_.path("int8"); }
  QuantisationReport quantise(const std::string& from, const QuantiseProgress& progress = {}) const {
    return quantise_model({.model = from, .output_dir = model(), .threads = 2}, progress);
  }
  static EngineConfig config_of(const std::string& model, WeightFormat weights) {
    EngineConfig config = tiny_config();
    config.model = model;
    config.weights = weights;
    config.precision = Precision::bfloat16;  // a GPU multiplies integers by 16 bits
    return config;
  }
  static std::vector<float> sound_of(const EngineConfig& config) {
    Engine engine(config);
    engine.start();
    return engine.submit(testing::short_request()).read_all();
  }

  const TemporaryFolder folder_;
};

TEST_F(QuantisedModel, SpeaksAsTheModelThatWasQuantisedWhileLoading) {
  for (const std::string& from : {tiny_config().model, std::string()}) {
    const QuantisationReport report = quantise(from);
    EXPECT_LT(report.bytes_after, report.bytes_before);
    const std::vector<float> expected = sound_of(config_of(from, WeightFormat::int8));
    EXPECT_EQ(sound_of(config_of(model(), WeightFormat::automatic)), expected) << from;
    Engine engine(config_of(from, WeightFormat::automatic));
    engine.start();
    EXPECT_NE(engine.submit(testing::short_request()).read_all(), expected) << from;
    engine.reload(config_of(model(), WeightFormat::int8));
    EXPECT_EQ(engine.submit(testing::short_request()).read_all(), expected) << from;
    fs::remove_all(model());
  }
}

TEST_F(QuantisedModel, Of4BitsSpeaksAsTheModelThatWasQuantisedWhileLoading) {
  for (const std::string& from : {tiny_config().model, std::string()}) {
    const auto write = [&](int group) {
      fs::remove_all(model());
      quantise_model({.model = from,
                      .output_dir = model(),
                      .weights = WeightFormat::int4,
                      .group = group,
                      .threads = 2});
    };
    write(0);
    const std::vector<float> expected = sound_of(config_of(from, WeightFormat::int4));
    EXPECT_EQ(sound_of(config_of(model(), WeightFormat::automatic)), expected) << from;
    EXPECT_EQ(sound_of(config_of(model(), WeightFormat::int4)), expected) << from;
    EXPECT_NE(sound_of(config_of(from, WeightFormat::int8)), expected) << from;
    EXPECT_EQ(error_of([&] { sound_of(config_of(model(), WeightFormat::int8)); }).code(),
              ErrorCode::unsupported);
    EXPECT_THAT(error_of([&] { quantise_model({.model = model(), .output_dir = model() + "2"}); }).message(),
                HasSubstr("int4 already"));
    write(32);
    EXPECT_NE(sound_of(config_of(model(), WeightFormat::automatic)), expected) << from;
    fs::remove_all(model());
  }
  for (const int group : {-1, 16, 48, 256})
    EXPECT_EQ(error_of([&] {
                quantise_model({.output_dir = model(), .weights = WeightFormat::int4, .group = group});
              }).code(),
              ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { quantise_model({.output_dir = model(), .group = 64}); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(QuantisedModel, Of4BitsIsPlannedAndReportedAsSuch) {
  quantise_model({.output_dir = model(), .weights = WeightFormat::int4, .threads = 2});
  EngineConfig stored = config_of(model(), WeightFormat::automatic),
               rounded = config_of("", WeightFormat::int4);
  stored.device = rounded.device = "cpu";
  stored.kv_memory_mb = rounded.kv_memory_mb = 64;
  const auto a = estimate_memory(stored).parts, b = estimate_memory(rounded).parts;
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].bytes, b[i].bytes) << a[i].name;
  const ModelReport before = inspect_model(""), after = inspect_model(model());
  EXPECT_EQ(after.weights, "int4");
  EXPECT_FALSE(after.problem);
  EXPECT_EQ(after.checkpoints[0].unused_tensors, before.checkpoints[0].unused_tensors);
  for (size_t i = 0; i < before.checkpoints[0].parts.size(); ++i) {
    const PartReport &wide = before.checkpoints[0].parts[i], &narrow = after.checkpoints[0].parts[i];
    EXPECT_EQ(narrow.bytes < 0.4 * static_cast<double>(wide.bytes), wide.name.ends_with(" layers"))
        << wide.name;
  }
}

// (What it sounds like: fp8_product_test.cc; a CPU does not multiply it.)
TEST_F(QuantisedModel, OfFp8IsReportedAndRefusedOnACpu) {
  const QuantisationReport made =
      quantise_model({.output_dir = model(), .weights = WeightFormat::fp8, .threads = 2});
  for (const QuantisedLayer& layer : made.layers) {
    EXPECT_GT(layer.mean_error, 0.02) << layer.name;  // three bits of mantissa
    EXPECT_LT(layer.mean_error, 0.03) << layer.name;
  }
  const ModelReport report = inspect_model(model());
  EXPECT_EQ(report.weights, "fp8");
  EXPECT_FALSE(report.problem);
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(model() + "/model.safetensors");
  const TensorView wo = *checkpoint.find("layers.0.attention.wo.weight");
  EXPECT_EQ(wo.dtype(), DType::f8);
  EXPECT_EQ(checkpoint.find("layers.0.attention.wo.scales")->shape(), Shape{wo.dim(0)});
  for (const WeightFormat format : {WeightFormat::automatic, WeightFormat::fp8}) {
    EngineConfig stored = config_of(model(), format), rounded = config_of("", WeightFormat::fp8);
    stored.device = rounded.device = "cpu";
    for (const EngineConfig& config : {stored, rounded}) {
      const Error error = error_of([&] { Engine(config).start(); });
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.message(), HasSubstr("fp8 needs a GPU; on a CPU use int8 or int4"));
      EXPECT_EQ(error_of([&] { estimate_memory(config); }).message(), error.message());
    }
  }
  EXPECT_EQ(error_of([&] { sound_of(config_of(model(), WeightFormat::int8)); }).code(),
            ErrorCode::unsupported);
  EXPECT_THAT(error_of([&] { quantise_model({.model = model(), .output_dir = model() + "2"}); }).message(),
              HasSubstr("fp8 already"));
  const auto refused = [&](const QuantiseOptions& options) {
    return error_of([&] { quantise_model(options); });
  };
  const std::string other = model() + "2";
  EXPECT_EQ(refused({.output_dir = other, .weights = WeightFormat::fp8, .group = 64}).code(),
            ErrorCode::invalid_argument);
  EXPECT_THAT(
      refused({.output_dir = other, .weights = WeightFormat::fp8, .calibration = "sentences"}).message(),
      HasSubstr("is for int8 and int4"));
}

TEST_F(QuantisedModel, IsPlannedAndReportedAsSuch) {
  quantise("");
  EngineConfig stored = config_of(model(), WeightFormat::automatic),
               rounded = config_of("", WeightFormat::int8);
  stored.precision = rounded.precision = Precision::automatic;
  stored.kv_memory_mb = rounded.kv_memory_mb = 64;
  const auto a = estimate_memory(stored).parts, b = estimate_memory(rounded).parts;
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].bytes, b[i].bytes) << a[i].name;

  const ModelReport before = inspect_model(""), after = inspect_model(model());
  EXPECT_EQ(before.weights + after.weights, "int8");
  EXPECT_EQ(after.precision, before.precision);
  EXPECT_FALSE(after.problem);
  EXPECT_EQ(after.checkpoints[0].unused_tensors, before.checkpoints[0].unused_tensors);
  for (size_t i = 0; i < before.checkpoints[0].parts.size(); ++i) {
    const PartReport &wide = before.checkpoints[0].parts[i], &narrow = after.checkpoints[0].parts[i];
    EXPECT_EQ(narrow.bytes < wide.bytes, wide.name.ends_with(" layers")) << wide.name;
  }
}

// Of shards, too. Everything that is not a layer's matrix stays as it was.
TEST_F(QuantisedModel, HasItsMatricesIn8BitsAndAllElseAsItWas) {
  const std::string from = folder_.path("s2");
  fs::copy(std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_s2", from);
  for (const char* name : {"codec.pth", "README.md", "voices/ann/clip.lab", ".git/HEAD", "notes/x"})
    folder_.write(concat("s2/", name), name);
  const QuantisationReport report = quantise(from);
  const auto config = dual_ar::Config::read(model() + "/config.json");
  EXPECT_EQ(std::ssize(report.layers), config.slow_layers + config.fast_layers);
  for (const QuantisedLayer& layer : report.layers) {
    EXPECT_GT(layer.mean_error, 0.001) << layer.name;
    EXPECT_LT(layer.worst_error, 0.02) << layer.name;
    EXPECT_GE(layer.worst_error, layer.mean_error) << layer.name;
  }
  for (const char* name : {"README.md", "voices/ann/clip.lab", "codec.pth", "tokenizer.json"})
    EXPECT_EQ(read_file(from + "/" + name, 1 << 20), read_file(model() + "/" + name, 1 << 20)) << name;
  for (const char* name :
       {".git", "notes", "model.safetensors.index.json", "model-00001-of-00002.safetensors"})
    EXPECT_FALSE(fs::exists(model() + "/" + name)) << name;
  const auto narrow = weights::Checkpoint::open(model() + "/model.safetensors");
  check_quantised(narrow, weights::Quantisation(), dual_ar::layer_matrices(config));
  for (const dual_ar::RequiredTensor& tensor : dual_ar::required_tensors(config))
    EXPECT_EQ(tensor.stored_in(narrow).problem, "");
}

TEST_F(QuantisedModel, TakesAnEmptyFolderAndNoOther) {
  fs::create_directory(model());
  quantise(tiny_config().model);
  const auto files = folder_.tree();
  const auto refused = [&](const std::string& from, const std::string& to) {
    return error_of([&] { quantise_model({.model = from, .output_dir = to}); }).code();
  };
  EXPECT_EQ(refused("", model()), ErrorCode::already_exists);
  EXPECT_EQ(refused("", model() + "/config.json"), ErrorCode::already_exists);
  EXPECT_EQ(refused("", model() + "/no/where"), ErrorCode::not_found);
  fs::create_directory(folder_.path("empty"));
  fs::create_directory_symlink(folder_.path("empty"), folder_.path("link"));
  EXPECT_EQ(refused("", folder_.path("link")), ErrorCode::invalid_argument);
  fs::remove(folder_.path("link"));
  fs::remove(folder_.path("empty"));
  EXPECT_EQ(refused(model(), folder_.path("twice")), ErrorCode::invalid_argument);
  EXPECT_EQ(folder_.tree(), files);
}

// The limit on the size of files stands for a full disk.
TEST_F(QuantisedModel, LeavesNothingWhenItIsInterruptedOrTheDiskIsFull) {
  for (const int last : {1, 10, 60}) {
    int left = last;
    const auto stop = [&](double share, const std::string&) { return share <= 1 && --left > 0; };
    EXPECT_EQ(error_of([&] { quantise("", stop); }).code(), ErrorCode::cancelled);
    EXPECT_THAT(folder_.tree(), IsEmpty());
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto older = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit low{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const Error error = error_of([&] { quantise(tiny_config().model); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, older);
  EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
  EXPECT_THAT(folder_.tree(), IsEmpty());
}

TEST_F(QuantisedModel, IsRefusedAlikeByWhoeverOpensIt) {
  quantise(tiny_config().model);
  const std::string good = read_file(model() + "/config.json", kMaxConfigBytes);
  for (const auto& [from, to] : {std::pair("\"version\": 1", "\"version\": 3"), std::pair("int8", "int2"),
                                 std::pair("shoal", "gptq"), std::pair("quantization_config", "other")}) {
    folder_.write("int8/config.json", std::string(good).replace(good.rfind(from), std::strlen(from), to));
    const EngineConfig config = config_of(model(), WeightFormat::automatic);
    const Error error = error_of([&] { Engine(config).start(); });
    EXPECT_THAT(error.message(), HasSubstr("quantization_config"));
    EXPECT_EQ(error_of([&] { inspect_model(model()); }).message(), error.message());
    EXPECT_EQ(error_of([&] { estimate_memory(config); }).message(), error.message());
  }
}

}  // namespace
}  // namespace shoal::runtime
