// 8- and 4-bit weights, 8-bit keys and values: what an engine with them takes, and who refuses them.
#include <algorithm>
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/json.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/kokoro/kokoro_testing.h"
#include "runtime/families/language/memory_plan.h"
#include "runtime/families/language/model_sizes.h"
#include "runtime/families/language/pipeline.h"
#include "shoal/model.h"
#include "shoal/quantise.h"
#include "weights/quantised.h"

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
bool is_head(const std::string& part) { return part.ends_with(", head"); }

// Of the bytes of S1-mini's head: only its text rows are narrow.
double share_of_head(double share_of_row) {
  const dual_ar::Config config = dual_ar::Config::s1_mini();
  const auto text = static_cast<double>(std::min(config.im_end, config.semantic_begin));
  return 1 - text * (1 - share_of_row) / static_cast<double>(config.vocab_size);
}

// A scale of four bytes for each output, which has 1,024 inputs or more, and a few norms of four bytes a
// value.
TEST(WeightFormats, EightBitsHalveTheLayersAndTextRowsAndChangeNothingElse) {
  const auto wide = estimate_memory(with_format("random:s1-mini", WeightFormat::automatic)).parts;
  const auto narrow = estimate_memory(with_format("random:s1-mini", WeightFormat::int8)).parts;
  ASSERT_EQ(wide.size(), narrow.size());
  int layers = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(wide[i].name, narrow[i].name);
    if (wide[i].name.starts_with("workspace")) continue;
    const double share = static_cast<double>(narrow[i].bytes) / static_cast<double>(wide[i].bytes);
    if (is_head(wide[i].name)) {
      EXPECT_NEAR(share, share_of_head(0.502), 0.001);
      continue;
    }
    if (!is_of_layers(wide[i].name)) {
      EXPECT_EQ(wide[i].bytes, narrow[i].bytes) << wide[i].name;
      continue;
    }
    ++layers;
    EXPECT_GT(share, 0.5) << wide[i].name;
    EXPECT_LT(share, 0.505) << wide[i].name;
  }
  EXPECT_EQ(layers, 2);  // slow and fast
}

// Half a byte a weight and four bytes for each 64, of 2 bytes a weight.
TEST(WeightFormats, FourBitsTake28HundredthsOfTheLayersAndTextRows) {
  const auto wide = estimate_memory(with_format("random:s1-mini", WeightFormat::automatic)).parts;
  const auto narrow = estimate_memory(with_format("random:s1-mini", WeightFormat::int4)).parts;
  for (size_t i = 0; i < wide.size(); ++i) {
    const double share = static_cast<double>(narrow[i].bytes) / static_cast<double>(wide[i].bytes);
    if (wide[i].name.starts_with("workspace")) continue;
    const double expected = is_of_layers(wide[i].name) ? 0.28125
                            : is_head(wide[i].name)    ? share_of_head(0.28125)
                                                       : 1;
    EXPECT_NEAR(share, expected, 0.001) << wide[i].name;
  }
}

TEST(WeightFormats, AGpuTakesThemBeside16BitsAlone) {
  constexpr Device kDevice{DeviceKind::cuda, 0};
  const std::pair<WeightFormat, DType> formats_and_dtypes[] = {
      {WeightFormat::int8, DType::i8}, {WeightFormat::int4, DType::u4}, {WeightFormat::fp8, DType::f8}};
  for (const auto& [format, dtype] : formats_and_dtypes) {
    for (const DType narrow : {DType::bf16, DType::f16}) {
      const Formats formats = with_weights(narrow, format, kDevice);
      EXPECT_EQ(formats.weights, dtype);
      EXPECT_EQ(formats.operands, narrow);
    }
    const Error error = testing::error_of([&, asked = format] { with_weights(DType::f32, asked, kDevice); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(),
                ::testing::AllOf(::testing::HasSubstr(std::string(name_of(format)) + " on a GPU"),
                                 ::testing::HasSubstr("--precision bfloat16")));
  }
}

TEST(WeightFormats, ACpuRefusesFp8AndSaysWhatItTakes) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const Error error = testing::error_of([&] { with_weights(precision, WeightFormat::fp8, {}); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.message(), "weights: fp8 needs a GPU; on a CPU use int8 or int4");
  }
}

// S1-mini's language model on a GPU, which need not be there.
dual_ar::DualAr on_a_gpu(DType weights, int64_t group = 0) {
  ModelSizes sizes{.language_model = dual_ar::Config::s1_mini(),
                   .formats = Formats(weights, DType::bf16, DType::bf16),
                   .device = {DeviceKind::cuda, 0}};
  sizes.formats.group = group;
  return sizes.sized_language_model();
}

// A GPU plans room for the matrix that it widens: an H100 of 4 bits in groups of 128 alone.
TEST(WeightFormats, AGpuPlansTheMatrixThatIsWidened) {
  SKIP_WITHOUT_CUDA();
  const auto workspace = [](const dual_ar::DualAr& model, int64_t rows) {
    return model.prefill_workspace_bytes({.device = {DeviceKind::cuda, 0}, .columns = rows});
  };
  const dual_ar::BlockConfig slow = dual_ar::Config::s1_mini().slow;
  const int64_t pair = 2 * slow.hidden * slow.dim * 2;
  const dual_ar::DualAr wide = on_a_gpu(DType::bf16);
  // The kernels of 9.0 leave eight sums of each of 128 rows for later; others widen weights of all formats.
  const bool widens_all = workspace(wide, 128) < 128 * slow.dim * 4 * 8;
  for (const auto& [weights, group] :
       {std::pair{DType::i8, 0}, {DType::f8, 0}, {DType::u4, 64}, {DType::u4, 128}}) {
    const dual_ar::DualAr narrow = on_a_gpu(weights, group);
    EXPECT_EQ(workspace(narrow, 16), workspace(wide, 16));  // skinny kernels widen nothing
    for (const int64_t rows : {17, 128, 256}) {
      // Beside the rows and the eight sums of each that wait.
      const int64_t with_pair = rows * slow.dim * 4 * (1 + 8) + pair;
      EXPECT_LT(workspace(wide, rows), with_pair);
      if (widens_all || group == 128) {
        EXPECT_GE(workspace(narrow, rows), with_pair) << rows;
      } else {
        EXPECT_LE(workspace(narrow, rows), workspace(wide, rows)) << rows;
      }
    }
  }
}

TEST(WeightFormats, OnAGpuTakeTheirBitsAndTheScalesOfGroups) {
  SKIP_WITHOUT_CUDA();
  const auto layers = [](DType weights, int64_t group = 0) {
    return static_cast<double>(on_a_gpu(weights, group).memory().slow_layers);
  };
  const double wide = layers(DType::bf16);
  EXPECT_NEAR(layers(DType::i8) / wide, 0.5, 0.003);
  EXPECT_EQ(layers(DType::f8), layers(DType::i8));
  EXPECT_NEAR(layers(DType::u4, 32) / wide, 5.0 / 16, 0.001);
  EXPECT_NEAR(layers(DType::u4, 64) / wide, 4.5 / 16, 0.001);
  EXPECT_NEAR(layers(DType::u4, 128) / wide, 4.25 / 16, 0.001);
}

// The plan of one user of S1-mini's sizes on a GPU, which need not be there: without clips, with keys and
// values of 8 bits.
MemoryPlan plan_of_one_user(DType weights, bool codec_in_8_bits) {
  EngineConfig config;
  config.max_batch_size = config.max_streams = 1;
  config.kv_memory_mb = 128;
  ModelSizes sizes{.language_model = dual_ar::Config::s1_mini(),
                   .codec = dac::Config::published(),
                   .formats = Formats(weights, DType::bf16, DType::i8),
                   .codec_in_8_bits = codec_in_8_bits,
                   .device = {DeviceKind::cuda, 0},
                   .semantic_head = true,
                   .with_encoder = false};
  if (weights == DType::u4) sizes.formats.group = kUsualGroup;
  constexpr int64_t kFree = int64_t{80} << 30;
  return plan_memory(config, sizes, split_threads(config, 8, /*device_computes=*/true), kFree);
}

TEST(CodecWeights, Of8BitsHalveTheCodecInThePlanOfAGpu) {
  SKIP_WITHOUT_CUDA();
  const MemoryPlan wide = plan_of_one_user(DType::bf16, false), narrow = plan_of_one_user(DType::bf16, true);
  EXPECT_LT(static_cast<double>(narrow.codec.total()), 0.55 * static_cast<double>(wide.codec.total()));
  EXPECT_EQ(narrow.language_model.total(), wide.language_model.total());
  EXPECT_EQ(narrow.kv_pages, wide.kv_pages);
  EXPECT_GT(narrow.recordings, wide.recordings);
  EXPECT_LT(plan_of_one_user(DType::i8, true).total(), 2.1e9);
  EXPECT_LT(plan_of_one_user(DType::u4, true).total(), 1.7e9);
}

TEST(CodecWeights, KokoroHasNone) {
  EngineConfig config =
      with_format(std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a", WeightFormat::automatic);
  config.codec_weights = CodecWeights::int8;
  Engine engine(config);
  for (const Error& error :
       {testing::error_of([&] { estimate_memory(config); }), testing::error_of([&] { engine.start(); })}) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("codec_weights: int8"));
  }
}

TEST(CodecWeights, InEightBitsAreNamed) {
  const FormatNames names = names_of(Formats(DType::bf16), MatrixFormat(DType::i8, DType::bf16));
  EXPECT_EQ(names, (FormatNames{"bfloat16", "bfloat16", "bfloat16", "int8"}));
  EXPECT_EQ(in_words(names), "bfloat16, int8 codec");
}

class EngineWithFormat : public ::testing::TestWithParam<WeightFormat> {};

INSTANTIATE_TEST_SUITE_P(Integers, EngineWithFormat,
                         ::testing::Values(WeightFormat::int8, WeightFormat::int4),
                         [](const auto& format) { return std::string(name_of(format.param)); });

TEST_P(EngineWithFormat, TakesWhatItsPlanSays) {
  const EngineConfig config = with_format("", GetParam());
  int64_t planned = 0, taken = 0;
  for (const MemoryPart& part : estimate_memory(config).parts)
    if (part.name.starts_with("language model")) planned += part.bytes;
  Engine engine(config);
  engine.start();
  for (const MemoryPart& part : engine.health().memory)
    if (part.name == "language model") taken = part.bytes;
  EXPECT_EQ(taken, planned);
}

TEST_P(EngineWithFormat, SaysHowWeightsAndKeysAreKept) {
  EngineConfig config = with_format("", GetParam());
  const std::string weights(name_of(GetParam()));
  Engine engine(config);
  engine.start();
  const FormatNames before = engine.health().formats;
  EXPECT_EQ(before, (FormatNames{before.precision, weights, before.precision, before.precision}));
  EXPECT_EQ(before, estimate_memory(config).formats);
  EXPECT_EQ(in_words(before), before.precision + ", " + weights + " weights");
  config.kv_precision = KvPrecision::int8;
  engine.reload(config);
  const FormatNames after = engine.health().formats;
  EXPECT_EQ(after, (FormatNames{before.precision, weights, "int8", before.precision}));
  EXPECT_EQ(in_words(after), before.precision + ", " + weights + " weights, int8 keys and values");
}

TEST(KvPrecision, EightBitsHoldNearlyTwiceThePages) {
  EngineConfig config = with_format("random:s1-mini", WeightFormat::automatic);
  config.kv_memory_mb = 1024;
  config.max_batch_size = 64;
  const auto pages = [&] {
    for (const auto& [name, figure] : estimate_memory(config).figures)
      if (name == "kv_pages") return figure;
    return int64_t{0};
  };
  const int64_t wide = pages();
  config.kv_precision = KvPrecision::int8;
  const int64_t narrow = pages();
  const double share = static_cast<double>(narrow) / static_cast<double>(wide);
  EXPECT_NEAR(share, 256.0 / 130.0, 0.01);  // bytes of a head of 128: two each, or one each and a scale
}

TEST(KvPrecision, KokoroHasNone) {
  EngineConfig config =
      with_format(std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a", WeightFormat::automatic);
  config.kv_precision = KvPrecision::int8;
  EXPECT_THROW(estimate_memory(config), Error);
  Engine engine(config);
  EXPECT_THROW(engine.start(), Error);
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

TEST(WeightFormats, KokoroIsNeitherQuantisedNorLoadedAsQuantised) {
  const testing::KokoroFolder kokoro;
  const std::string dir = kokoro.folder().path(), config = dir + "/config.json";
  const auto expect_refused = [](auto call) {
    EXPECT_EQ(testing::error_of(call).code(), ErrorCode::unsupported);
  };
  expect_refused([&] { quantise_model({.model = dir, .output_dir = dir + "/new"}); });
  const std::string text = weights::Quantisation().added_to(read_file(config, kMaxConfigBytes));
  std::filesystem::remove(config);
  kokoro.folder().write("config.json", text);
  expect_refused([&] { inspect_model(dir); });
  expect_refused([&] { Engine(with_format(dir, WeightFormat::automatic)).start(); });
}

}  // namespace
}  // namespace shoal::runtime
