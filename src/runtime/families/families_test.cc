// The family of a model, and what the public API reports about it before it is loaded.
#include <gmock/gmock.h>
#include <numeric>

#include "base/temporary_folder_testing.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/family.h"
#include "runtime/families/kokoro/kokoro_testing.h"
#include "shoal/model.h"

namespace shoal::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::KokoroFolder;
using testing::tiny_config;

const std::string kData = std::string(SHOAL_SOURCE_DIR) + "/tests/data";

std::vector<const Family*> that_recognise(const std::string& model) {
  std::vector<const Family*> found;
  for (const Family* family : families())
    if (family->recognises(model)) found.push_back(family);
  return found;
}

int64_t integer_of(const ModelReport& report, const std::string& name) {
  for (const ReportValue& value : report.values)
    if (value.name == name) return std::get<int64_t>(value.value);
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Families, EveryModelBelongsToExactlyOneFamily) {
  const KokoroFolder kokoro;
  const std::pair<std::string, std::string> models[] = {{kData + "/fish/set_a", "s1"},
                                                        {kData + "/fish/set_s2", "s2"},
                                                        {std::string(SHOAL_SOURCE_DIR) + "/voice", "s1"},
                                                        {"", "s1"},
                                                        {"random:s1-mini", "s1"},
                                                        {"random:s2-pro", "s2"},
                                                        {kData + "/kokoro/set_a", "kokoro"},
                                                        {kokoro.folder().path(), "kokoro"},
                                                        {kokoro.folder().path("kokoro-v1_0.pth"), "kokoro"},
                                                        {"random:kokoro", "kokoro"}};
  for (const auto& [model, family] : models) {
    EXPECT_EQ(that_recognise(model).size(), 1u) << model;
    EXPECT_EQ(traits_of(model).family, family) << model;
  }
}

TEST(Families, UnreadableModelsBelongToNoFamily) {
  const TemporaryFolder folder;
  folder.write("broken/config.json", "{");
  folder.write("list/config.json", "[]");
  folder.write("other/config.json", R"({"model_type": "llama"})");
  for (const std::string name : {"", "broken", "list", "other", "missing"}) {
    EXPECT_THAT(that_recognise(folder.path(name)), IsEmpty()) << name;
    EXPECT_EQ(traits_of(folder.path(name)).family, "") << name;
  }
}

TEST(Families, AnEmptyFolderIsToldWhatIsMissing) {
  const TemporaryFolder folder;
  EngineConfig config = tiny_config();
  config.model = folder.path();
  const Error loading = error_of([&] { Engine(config).start(); });
  EXPECT_EQ(loading.code(), ErrorCode::not_found);
  EXPECT_THAT(loading.message(), HasSubstr("the configuration is missing: put config.json"));
  EXPECT_EQ(error_of([&] { inspect_model(folder.path()); }).message(), loading.message());
  EXPECT_EQ(error_of([&] { estimate_memory(config); }).message(), loading.message());
}

TEST(Families, TraitsAreThoseOfTheLoadedModel) {
  const KokoroFolder kokoro;
  for (const EngineConfig& config : {tiny_config(), kokoro.config()}) {
    Engine engine(config);
    engine.start();
    const ModelTraits loaded = engine.traits(), told = traits_of(config.model);
    EXPECT_EQ(told.family, loaded.family);
    EXPECT_EQ(told.phonemes, loaded.phonemes);
    EXPECT_EQ(told.own_voices, loaded.own_voices);
    EXPECT_EQ(told.references, loaded.references);
    EXPECT_EQ(told.speakers, loaded.speakers);
    EXPECT_EQ(told.tags, loaded.tags);
  }
}

TEST(Families, ARequestIsCheckedByItsModel) {
  const KokoroFolder kokoro;
  const std::string phonetic = kokoro.folder().path(), language = tiny_config().model;
  SpeechRequest request;
  EXPECT_EQ(error_of([&] { validate_request(request, phonetic); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { validate_request(request, language); }).code(), ErrorCode::invalid_argument);
  request.text = "Hello.";
  EXPECT_THAT(validate_request(request, phonetic), IsEmpty());
  EXPECT_THAT(validate_request(request, language), IsEmpty());

  request.top_k = 3;
  EXPECT_THAT(validate_request(request, language), IsEmpty());
  EXPECT_THAT(validate_request(request, phonetic), ElementsAre(HasSubstr("top_k: has no effect")));
  request.strict = true;
  EXPECT_EQ(error_of([&] { validate_request(request, phonetic); }).code(), ErrorCode::unsupported);

  request = {};
  request.phonemes = "həlˈO";
  EXPECT_THAT(validate_request(request, phonetic), IsEmpty());
  EXPECT_EQ(error_of([&] { validate_request(request, language); }).code(), ErrorCode::unsupported);
  request.phonemes.assign(static_cast<size_t>(kMaxTextBytes) + 1, 'a');
  EXPECT_EQ(error_of([&] { validate_request(request, phonetic); }).code(), ErrorCode::too_large);
}

TEST(Families, AnEngineForOneRequestReservesOnlyWhatItNeeds) {
  const KokoroFolder kokoro;
  SpeechRequest request;
  request.text = "Hello.";
  const EngineConfig language = config_for_one(tiny_config(), request);
  EXPECT_EQ(language.max_batch_size, 1);
  EXPECT_EQ(language.max_queue, 1);
  EXPECT_FALSE(language.with_encoder);
  request.voice = "ann";
  EXPECT_TRUE(config_for_one(tiny_config(), request).with_encoder);
  // The chunks of its text are spoken together.
  EXPECT_EQ(config_for_one(kokoro.config(), request).max_batch_size, EngineConfig().max_batch_size);
  EXPECT_EQ(config_for_one(kokoro.config(), request).max_queue, 1);
}

TEST(InspectModel, ReportsThePartsOfALanguageModel) {
  const ModelReport report = inspect_model(tiny_config().model, Precision::float32);
  EXPECT_EQ(report.dir, tiny_config().model);
  EXPECT_EQ(report.family, "s1");
  EXPECT_EQ(report.precision, "F32");
  ASSERT_EQ(report.checkpoints.size(), 2u);
  EXPECT_EQ(report.checkpoints[0].name, "language model");
  EXPECT_EQ(report.checkpoints[1].name, "codec");
  int64_t bytes = 0;
  for (const CheckpointReport& checkpoint : report.checkpoints) {
    EXPECT_FALSE(checkpoint.tensors.empty());
    EXPECT_THAT(checkpoint.problems, IsEmpty());
    for (const PartReport& part : checkpoint.parts) {
      EXPECT_EQ(part.bytes, 4 * part.parameters);
      bytes += part.bytes;
    }
  }
  EXPECT_EQ(integer_of(report, "weight_bytes"), bytes);
  const ModelReport narrow = inspect_model(tiny_config().model, Precision::bfloat16);
  EXPECT_EQ(integer_of(narrow, "weight_bytes"), bytes / 2);
  EXPECT_EQ(integer_of(narrow, "kv_bytes_per_token"), integer_of(report, "kv_bytes_per_token") / 2);
  EXPECT_FALSE(report.problem) << report.problem->message();
}

TEST(InspectModel, ReportsTheSizesOfRandomWeights) {
  const ModelReport report = inspect_model("random:s2-pro", Precision::bfloat16);
  EXPECT_EQ(report.family, "s2");
  ASSERT_EQ(report.checkpoints.size(), 2u);
  int64_t parameters = 0;
  for (const PartReport& part : report.checkpoints[0].parts) parameters += part.parameters;
  EXPECT_EQ(parameters, 4'561'852'416);  // of the published checkpoint
  ASSERT_EQ(report.values.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(report.values[1].value), 147'456);  // bytes of keys and values a column
  EXPECT_FALSE(report.problem);
}

TEST(InspectModel, ReportsTheVoicesOfAModelThatHasThem) {
  const KokoroFolder kokoro;
  const ModelReport report = inspect_model(kokoro.folder().path());
  EXPECT_EQ(report.family, "kokoro");
  ASSERT_EQ(report.checkpoints.size(), 1u);
  EXPECT_EQ(report.checkpoints[0].unused_tensors, 2);  // PLBERT's pooler
  EXPECT_THAT(report.values, Contains(Field(&ReportValue::name, "voices")));
  EXPECT_FALSE(report.problem) << report.problem->message();
}

TEST(InspectModel, ReportsTheReadablePartsAndTheProblem) {
  const ModelReport voiceless = inspect_model(kData + "/kokoro/set_a");
  ASSERT_TRUE(voiceless.problem);
  EXPECT_EQ(voiceless.problem->code(), ErrorCode::not_found);
  EXPECT_THAT(voiceless.problem->message(), HasSubstr("has no voices"));
  EXPECT_EQ(voiceless.checkpoints.size(), 1u);
}

TEST(EstimateMemory, IsTheSumOfItsPartsComparedWithFreeMemory) {
  const KokoroFolder kokoro;
  for (const EngineConfig& config : {tiny_config(), kokoro.config()}) {
    MemoryEstimate estimate = estimate_memory(config);
    EXPECT_EQ(estimate.formats.precision, "float32");
    EXPECT_GT(estimate.available_bytes, 0);
    EXPECT_EQ(estimate.total_bytes(),
              std::accumulate(estimate.parts.begin(), estimate.parts.end(), int64_t{0},
                              [](int64_t sum, const MemoryPart& part) { return sum + part.bytes; }));
    EXPECT_TRUE(estimate.fits());
    estimate.check();
    estimate.available_bytes = estimate.total_bytes() - 1;
    EXPECT_FALSE(estimate.fits());
    EXPECT_EQ(error_of([&] { estimate.check(); }).code(), ErrorCode::resource_exhausted);
  }
}

TEST(EstimateMemory, GrowsWithTheBatch) {
  for (const std::string& model : {tiny_config().model, std::string("random:kokoro")}) {
    EngineConfig few = tiny_config();
    few.model = model;
    few.kv_memory_mb = 64;
    few.max_batch_size = 1;
    few.max_batch_frames = 4000;  // more than one utterance has
    EngineConfig many = few;
    many.max_batch_size = 8;
    EXPECT_LT(estimate_memory(few).total_bytes(), estimate_memory(many).total_bytes()) << model;
  }
}

}  // namespace
}  // namespace shoal::runtime
