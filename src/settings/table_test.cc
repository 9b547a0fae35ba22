#include "settings/table.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "shoal/settings.h"

namespace shoal::settings {
namespace {

// Converts to any type, to count fields by brace initialisation.
struct Anything {
  template <typename T>
  operator T() const;
};

template <typename T, typename... Fields>
constexpr size_t count_fields() {
  if constexpr (requires { T{Fields{}..., Anything{}}; }) return count_fields<T, Fields..., Anything>();
  return sizeof...(Fields);
}

size_t offset(const Row& row) {
  static const Configs configs;
  const auto from = [](const auto& config, auto field) {
    return static_cast<size_t>(reinterpret_cast<const char*>(&(config.*field)) -
                               reinterpret_cast<const char*>(&config));
  };
  return std::visit(
      [&]<typename T, typename C>(T C::* field) {
        if constexpr (std::is_same_v<C, EngineConfig>)
          return from(configs.engine, field);
        else
          return from(configs.server, field);
      },
      row.field);
}

TEST(Table, HasOneRowForEachFieldInTheirOrder) {
  EXPECT_EQ(engine_settings().size(), count_fields<EngineConfig>());
  EXPECT_EQ(server_settings().size(), count_fields<ServerConfig>());
  EXPECT_EQ(rows().size(), engine_settings().size() + server_settings().size());
  for (size_t i = 1; i < rows().size(); ++i) {
    const Row &before = rows()[i - 1], &row = rows()[i];
    EXPECT_LE(before.of_server(), row.of_server()) << row.key;
    if (before.of_server() == row.of_server()) {
      EXPECT_LT(offset(before), offset(row)) << row.key;
    }
  }
}

TEST(Table, NamesAreUniqueAndLowerCase) {
  std::set<std::string_view> keys;
  for (const Row& row : rows()) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_EQ(row.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << row.key;
    EXPECT_FALSE(row.help.empty() || row.group.empty()) << row.key;
  }
  std::set<std::pair<Source, std::string_view>> names;
  for (const Alias& alias : aliases()) {
    EXPECT_TRUE(names.insert({alias.source, alias.name}).second) << alias.name;
    EXPECT_TRUE(keys.contains(alias.key)) << alias.key;
    EXPECT_FALSE(keys.contains(alias.name)) << alias.name;
  }
}

TEST(Table, FlagAndVariableFollowFromTheKey) {
  const auto found = std::ranges::find(engine_settings(), "max_batch_size", &Setting::key);
  ASSERT_NE(found, engine_settings().end());
  const Setting& setting = *found;
  EXPECT_EQ(flag_of(setting), "--max-batch-size");
  EXPECT_EQ(variable_of(setting), "SHOAL_MAX_BATCH_SIZE");
  EXPECT_THAT(setting.older_names, testing::ElementsAre("S1_MINI_ENABLE_BATCHING", "S1_MINI_BATCH_SIZE",
                                                        "enable_batching", "enable_kokoro_batching"));
}

TEST(Table, BoundsAreAllowedAndTheirNeighboursAreNot) {
  for (const Row& row : rows()) {
    if (row.type() != Type::integer && row.type() != Type::number) continue;
    SCOPED_TRACE(row.key);
    const bool whole = row.type() == Type::integer;
    const auto value = [&](double x) { return whole ? Value(static_cast<int64_t>(x)) : Value(x); };
    const double beside = whole ? 1 : 1e-6;
    for (const double good : {row.allowed.low, row.allowed.high}) {
      Configs configs;
      set(row, value(good), configs);
      EXPECT_EQ(get(row, configs), value(good));
    }
    for (const double bad : {row.allowed.low - beside, row.allowed.high + beside}) {
      Configs configs;
      EXPECT_THROW(set(row, value(bad), configs), Error);
      EXPECT_EQ(configs, Configs{});
    }
  }
}

TEST(Table, NumbersTooLargeForTheFieldAreOutOfRange) {
  Configs config;
  // 2^32 + 1 is 1 in the lower 32 bits.
  EXPECT_THROW(set(*find_row("max_batch_size"), int64_t{4294967297}, config), Error);
  EXPECT_THROW(set(*find_row("kv_memory_mb"), INT64_MAX, config), Error);
  EXPECT_THROW(set(*find_row("prefetch_s"), std::numeric_limits<double>::quiet_NaN(), config), Error);
  EXPECT_THROW(set(*find_row("prefetch_s"), std::numeric_limits<double>::infinity(), config), Error);
  EXPECT_THROW(set(*find_row("model"), std::string("a\0b", 3), config), Error);
}

TEST(Validate, NamesTheFieldItsRangeAndItsValue) {
  EngineConfig config;
  EXPECT_NO_THROW(config.validate());
  config.threads = 2000;
  try {
    config.validate();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "threads: expected 0 to 1024, got 2000");
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(Validate, ChecksSettingsAgainstEachOther) {
  EXPECT_NO_THROW((EngineConfig{.max_batch_size = 8, .max_streams = 8}.validate()));
  EXPECT_THROW((EngineConfig{.max_batch_size = 8, .max_streams = 7}.validate()), Error);
  EXPECT_NO_THROW((EngineConfig{.threads = 2, .codec_threads = 2}.validate()));
  EXPECT_THROW((EngineConfig{.threads = 2, .codec_threads = 3}.validate()), Error);
  EXPECT_NO_THROW((EngineConfig{.threads = 0, .codec_threads = 3}.validate()));
  EXPECT_NO_THROW((EngineConfig{.codec_multiprocessors = 64}.validate()));
  EXPECT_THROW((EngineConfig{.codec_multiprocessors = -2}.validate()), Error);
  EXPECT_THROW((EngineConfig{.warm_voices = "all", .with_encoder = false}.validate()), Error);
  EXPECT_THROW((EngineConfig{.references_dir = ""}.validate()), Error);
  EXPECT_THROW((EngineConfig{.warm_voices = ""}.validate()), Error);
}

TEST(Validate, KnowsDevices) {
  for (const char* good : {"auto", "cpu", "cuda", "cuda:0", "cuda:15"})
    EXPECT_NO_THROW((EngineConfig{.device = good}.validate())) << good;
  for (const char* bad : {"", "CPU", "gpu", "cuda:", "cuda:x", "cuda:1234", "cuda:-1", "cuda0", "mps"})
    EXPECT_THROW((EngineConfig{.device = bad}.validate()), Error) << bad;
}

TEST(Validate, KnowsThatFloat16NeedsAGpu) {
  for (const char* device : {"auto", "cuda", "cuda:1"})
    EXPECT_NO_THROW((EngineConfig{.device = device, .precision = Precision::float16}.validate())) << device;
  try {
    EngineConfig{.device = "cpu", .precision = Precision::float16}.validate();
    FAIL() << "float16 was taken for a CPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(),
                testing::AllOf(testing::StartsWith("precision: "), testing::HasSubstr("GPU")));
  }
}

TEST(WeightFormat, NamesAreReadBack) {
  for (const WeightFormat format :
       {WeightFormat::automatic, WeightFormat::int8, WeightFormat::int4, WeightFormat::fp8})
    EXPECT_EQ(parse_weight_format(name_of(format)), format);
  for (const std::string bad : {"", "INT8", "int2", "FP8", "bfloat16"}) try {
      parse_weight_format(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << bad;
      EXPECT_NE(error.message().find("int8, int4 or fp8"), std::string::npos);
    }
  for (const char* device : {"auto", "cpu", "cuda", "cuda:1"})
    EXPECT_NO_THROW((EngineConfig{.device = device, .weights = WeightFormat::int8}.validate())) << device;
}

TEST(KvPrecisionNames, AreReadBackAndFp8IsUnsupported) {
  for (const KvPrecision precision : {KvPrecision::automatic, KvPrecision::model, KvPrecision::int8})
    EXPECT_EQ(parse_kv_precision(name_of(precision)), precision);
  for (const char* bad : {"", "INT8", "bf16", "fp8"}) try {
      parse_kv_precision(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(),
                bad == std::string("fp8") ? ErrorCode::unsupported : ErrorCode::invalid_argument);
    }
}

TEST(CodecWeightsNames, AreReadBackAndOthersAreRefused) {
  for (const CodecWeights weights : {CodecWeights::automatic, CodecWeights::int8})
    EXPECT_EQ(parse_codec_weights(name_of(weights)), weights);
  for (const std::string bad : {"", "INT8", "bfloat16", "int4", "fp8"}) try {
      parse_codec_weights(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      const bool known = bad == "int4" || bad == "fp8";
      EXPECT_EQ(error.code(), known ? ErrorCode::unsupported : ErrorCode::invalid_argument) << bad;
      EXPECT_NE(error.message().find("codec_weights"), std::string::npos) << bad;
      EXPECT_NE(error.message().find("int8"), std::string::npos) << bad;
    }
}

TEST(Precision, NamesAreReadBack) {
  for (const Precision precision :
       {Precision::automatic, Precision::float32, Precision::bfloat16, Precision::float16})
    EXPECT_EQ(parse_precision(name_of(precision)), precision);
  for (const char* bad : {"", "bf16", "half", "Float16", "float64"})
    EXPECT_THROW(parse_precision(bad), Error) << bad;
}

}  // namespace
}  // namespace shoal::settings
