// 8-bit weights: what an engine with them takes, and who refuses them.
#include <gmock/gmock.h>

#include "runtime/engine/engine_testing.h"
#include "shoal/model.h"

namespace shoal::runtime {
namespace {

EngineConfig with_format(const std::string& model, WeightFormat weights) {
  EngineConfig config = testing::tiny_config();
  config.device = "cpu";
  config.model = model;
  config.precision = Precision::bfloat16;
  config.weights = weights;
  config.kv_memory_mb = 64;
  return config;
}

bool is_of_layers(const std::string& part) { return part.ends_with(" layers"); }

// A scale of four bytes for each output, which has 1,024 inputs or more, and a few norms of four bytes a
// value.
TEST(WeightFormats, EightBitsHalveTheLayersAndChangeNothingElse) {
  const auto wide = estimate_memory(with_format("random:s1-mini", WeightFormat::automatic)).parts;
  const auto narrow = estimate_memory(with_format("random:s1-mini", WeightFormat::int8)).parts;
  ASSERT_EQ(wide.size(), narrow.size());
  int layers = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(wide[i].name, narrow[i].name);
    if (wide[i].name.starts_with("workspace")) continue;
    if (!is_of_layers(wide[i].name)) {
      EXPECT_EQ(wide[i].bytes, narrow[i].bytes) << wide[i].name;
      continue;
    }
    ++layers;
    const double share = static_cast<double>(narrow[i].bytes) / static_cast<double>(wide[i].bytes);
    EXPECT_GT(share, 0.5) << wide[i].name;
    EXPECT_LT(share, 0.505) << wide[i].name;
  }
  EXPECT_EQ(layers, 2);  // slow and fast
}

TEST(WeightFormats, AnEngineTakesWhatItsPlanSays) {
  const EngineConfig config = with_format("", WeightFormat::int8);
  int64_t planned = 0, taken = 0;
  for (const MemoryPart& part : estimate_memory(config).parts)
    if (part.name.starts_with("language model")) planned += part.bytes;
  Engine engine(config);
  engine.start();
  for (const MemoryPart& part : engine.health().memory)
    if (part.name == "language model") taken = part.bytes;
  EXPECT_EQ(taken, planned);
}

TEST(WeightFormats, KokoroRefusesThem) {
  const EngineConfig config =
      with_format(std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a", WeightFormat::int8);
  try {
    estimate_memory(config);
    ADD_FAILURE() << "planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("weights: int8"));
  }
  Engine engine(config);
  EXPECT_THROW(engine.start(), Error);
}

}  // namespace
}  // namespace shoal::runtime
