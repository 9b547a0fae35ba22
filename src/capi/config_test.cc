#include "capi/config.h"

#include <gmock/gmock.h>

#include "base/temporary_folder_testing.h"
#include "capi/capi_testing.h"
#include "shoal/settings.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::string setting(const Config& config, const char* name) {
  return text_of(made<Buffer>(shoal_config_get, config.get(), name));
}

TEST(CConfig, HasEverySettingOfAnEngineUnderItsNameAndDefault) {
  const Config config = made<Config>(shoal_config_new);
  EXPECT_EQ(config->values.engine, EngineConfig{});
  const Json fields = json_of(made<Buffer>(shoal_config_fields));
  ASSERT_EQ(fields.as_array().size(), engine_settings().size());
  for (size_t i = 0; i < engine_settings().size(); ++i) {
    const Json& field = fields.as_array()[i];
    const std::string& name = field.at("name").as_string();
    EXPECT_EQ(name, engine_settings()[i].key);
    EXPECT_EQ(setting(config, name.c_str()), field.at("default").as_string());
    // What is told as the default can be set.
    EXPECT_EQ(shoal_config_set(config.get(), name.c_str(), field.at("default").as_string().c_str(), nullptr),
              SHOAL_OK)
        << name;
  }
  EXPECT_EQ(config->values.engine, EngineConfig{});
}

TEST(CConfig, TakesValuesAsTextAndNullForTheDefault) {
  const Config config = made<Config>(shoal_config_new);
  shoal_config_set(config.get(), "kv_memory_mb", "64", nullptr);
  shoal_config_set(config.get(), "prefix_cache", "false", nullptr);
  shoal_config_set(config.get(), "precision", "bfloat16", nullptr);
  shoal_config_set(config.get(), "prefetch_s", "2.5", nullptr);
  EngineConfig wanted;
  wanted.kv_memory_mb = 64;
  wanted.prefix_cache = false;
  wanted.precision = Precision::bfloat16;
  wanted.prefetch_s = 2.5;
  EXPECT_EQ(config->values.engine, wanted);
  EXPECT_EQ(setting(config, "prefetch_s"), "2.5");
  for (const char* name : {"kv_memory_mb", "prefix_cache", "precision", "prefetch_s"})
    EXPECT_EQ(shoal_config_set(config.get(), name, nullptr, nullptr), SHOAL_OK);
  EXPECT_EQ(config->values.engine, EngineConfig{});
}

TEST(CConfig, RefusesWhatASettingsFileWouldRefuse) {
  const Config config = made<Config>(shoal_config_new);
  const auto refused = [&](const char* name, const char* value) {
    shoal_error error = SHOAL_ERROR_INIT;
    const shoal_code code = shoal_config_set(config.get(), name, value, &error);
    EXPECT_EQ(code, error.code);
    return std::string(shoal_code_name(code)) + ": " + error.message;
  };
  EXPECT_EQ(refused("kv_memory", "64"),
            "invalid_argument: settings have no \"kv_memory\"; did you mean \"kv_memory_mb\"?");
  EXPECT_EQ(refused("max_batch_size", "many"),
            "invalid_argument: max_batch_size: expected an integer, got \"many\"");
  EXPECT_THAT(refused("max_batch_size", "0"), HasSubstr("max_batch_size: expected 1 to 1024, got 0"));
  EXPECT_THAT(refused("kv_precision", "fp8"), HasSubstr("unsupported: kv_precision"));
  EXPECT_EQ(refused("listen", "0.0.0.0:80"),
            "unsupported: listen: it is a setting of the server, not of an engine");
  EXPECT_THAT(refused(nullptr, "1"), HasSubstr("name: expected a text, got NULL"));
  EXPECT_EQ(config->values.engine, EngineConfig{}) << "a refused value changes nothing";
  // Values that do not go together are found when an engine is made.
  shoal_config_set(config.get(), "max_streams", "2", nullptr);
  shoal_engine* engine = nullptr;
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_engine_new(config.get(), &engine, &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("max_streams"));
  EXPECT_EQ(engine, nullptr);
}

TEST(CConfig, ReadsASettingsFile) {
  const TemporaryFolder folder;
  const Config config = made<Config>(shoal_config_new);
  const std::string path = folder.write("shoal.toml", "max_batch_size = 7\nlisten = \"127.0.0.1:1\"\n");
  EXPECT_EQ(shoal_config_load(config.get(), path.c_str(), 0, nullptr), SHOAL_OK);
  EXPECT_EQ(config->values.engine.max_batch_size, 7);
  shoal_config_set(config.get(), "max_batch_size", "8", nullptr);
  EXPECT_EQ(setting(config, "max_batch_size"), "8");
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_config_load(config.get(), folder.path("none.toml").c_str(), 0, &error), SHOAL_NOT_FOUND);
  EXPECT_THAT(error.message, HasSubstr("none.toml"));
}

TEST(CConfig, ReadsTheEnvironmentOnlyWhenAsked) {
  setenv("SHOAL_MAX_BATCH_SIZE", "9", 1);
  const Config config = made<Config>(shoal_config_new);
  EXPECT_EQ(shoal_config_load(config.get(), nullptr, 0, nullptr), SHOAL_OK);
  EXPECT_EQ(config->values.engine.max_batch_size, EngineConfig{}.max_batch_size);
  EXPECT_EQ(shoal_config_load(config.get(), nullptr, 1, nullptr), SHOAL_OK);
  EXPECT_EQ(config->values.engine.max_batch_size, 9);
  unsetenv("SHOAL_MAX_BATCH_SIZE");
}

TEST(CModel, CanBeInspectedAndPlannedWithoutAnEngine) {
  const std::string model = tiny_settings()[0].second;
  const Json brief = json_of(made<Buffer>(shoal_inspect_model, model.c_str(), nullptr, 0));
  EXPECT_EQ(brief.at("family").as_string(), "s1");
  EXPECT_EQ(brief.at("dir").as_string(), model);
  EXPECT_EQ(brief.at("language_model").find("tensor_list"), nullptr);
  const Json whole = json_of(made<Buffer>(shoal_inspect_model, model.c_str(), "float32", 1));
  EXPECT_EQ(whole.at("language_model").at("tensor_list").as_array().size(),
            static_cast<size_t>(whole.at("language_model").at("tensors").as_integer()));
  const Json plan = json_of(made<Buffer>(shoal_estimate_memory, tiny_config().get()));
  int64_t total = 0;
  for (const auto& [name, bytes] : plan.at("bytes").as_object()) total += bytes.as_integer();
  EXPECT_EQ(plan.at("total_bytes").as_integer(), total);
  EXPECT_TRUE(plan.at("fits").as_bool());
  EXPECT_EQ(text_of(made<Buffer>(shoal_resolve_device, "cpu")), "cpu");
  shoal_buffer* json = nullptr;
  EXPECT_EQ(shoal_inspect_model("/nonexistent", nullptr, 0, &json, nullptr), SHOAL_NOT_FOUND);
  EXPECT_EQ(shoal_inspect_model(model.c_str(), "float8", 0, &json, nullptr), SHOAL_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shoal::capi
