#include "models/dual_ar/dual_ar.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "base/error.h"
#include "models/dual_ar/random_model_testing.h"
#include "models/dual_ar/reference_testing.h"
#include "ops/device_testing.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

using parity::LmDriver;
using parity::LmMachine;
using parity::TapRecorder;
using ::testing::AllOf;
using testing::CheckpointFile;
using ::testing::HasSubstr;
using testing::NamedWeights;

double distance(const std::vector<float>& ours, const testing::Matrix& expected) {
  double difference = 0, norm = 0;
  size_t i = 0;
  for (const auto& row : expected)
    for (double value : row) {
      difference += std::pow(double{ours.at(i++)} - value, 2);
      norm += value * value;
    }
  EXPECT_EQ(i, ours.size());
  return std::sqrt(difference / norm);
}

struct Case {
  Config config;
  NamedWeights weights;
  std::vector<int32_t> prompt, forced;  // forced: one frame
};

Case random_case(const Config& config, std::mt19937& random) {
  Case c{config, testing::random_weights(config, random), {}, {}};
  c.prompt = testing::random_columns(config, 13, random);
  c.forced = testing::random_columns(config, 1, random);
  return c;
}

struct Outcome {
  TapRecorder slow, frame;
  std::vector<float> logits;  // of every prompt row
};

Outcome run(const Case& c, const CheckpointFile& file, const LoadOptions& options) {
  LmMachine machine;
  const auto checkpoint = weights::Checkpoint::open(file.path());
  const DualAr model = DualAr::load(checkpoint, c.config, machine.context, options);
  LmDriver driver(model, machine.context, {.columns_per_sequence = 13, .page_size = 5});
  Outcome outcome;
  const Tensor hidden = driver.forward(0, c.prompt, &outcome.slow);
  std::vector<float>& last = outcome.slow.values.at(concat("layer.", c.config.slow_layers - 1));
  outcome.logits = driver.logits(TensorView::of(last.data(), DType::f32, {13, c.config.slow.dim}));
  outcome.frame.forced = c.forced;
  const FrameRequest request;
  driver.draw(hidden, {&request, 1}, &outcome.frame);
  return outcome;
}

void expect_agreement(const Case& c, const Outcome& ours, double bound) {
  const auto slow = testing::reference_slow(c.config, c.weights, c.prompt);
  EXPECT_LE(distance(ours.slow.values.at("embed.0"), slow.embed), bound);
  for (size_t i = 0; i < slow.layers.size(); ++i)
    EXPECT_LE(distance(ours.slow.values.at(concat("layer.", i)), slow.layers[i]), bound) << "layer " << i;
  EXPECT_LE(distance(ours.logits, slow.logits), bound);
  const auto fast = testing::reference_fast(c.config, c.weights, slow.layers.back().back(),
                                            std::span<const int32_t>(c.forced).subspan(1));
  EXPECT_LE(distance(ours.frame.values.at("fast_in.0"), {fast.fast_in}), bound);
  for (int64_t k = 1; k < c.config.num_codebooks; ++k) {
    auto expected = fast.logits[static_cast<size_t>(k)];
    expected.resize(static_cast<size_t>(c.config.residual_codes()));
    EXPECT_LE(distance(ours.frame.values.at(concat("fast_logits.", k)), {expected}), bound)
        << "codebook " << k;
  }
}

// f32: each of a few dozen chained operations adds about sqrt(depth <= 140) * 2^-24 = 7e-7 at worst, mostly
// averaging out. bf16: products see inputs rounded to 2^-9, and these random models are small, so little
// averages out.
constexpr double kF32Bound = 2e-6, kBf16Bound = 3e-2;

class RandomModel : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomModel, AgreesWithThePlainReference) {
  std::mt19937 random(GetParam());
  const Case c = random_case(testing::random_config(random), random);
  NamedWeights stored = c.weights;
  if (GetParam() % 3 == 0) testing::split_qkv(c.config, stored);
  const CheckpointFile file(stored, GetParam() % 2 == 0 ? DType::bf16 : DType::f32);
  expect_agreement(c, run(c, file, {.formats = DType::f32, .head_rows = HeadRows::all}), kF32Bound);
  expect_agreement(c, run(c, file, {.formats = DType::bf16, .head_rows = HeadRows::all}), kBf16Bound);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomModel, ::testing::Range(0u, 16u));

TEST(DualAr, S1KeepsTheFirst1024LogitsOfResidualCodebooks) {
  std::mt19937 random(3);
  Config config = testing::random_config(random);
  config.family = Family::s1;
  config.codebook_size = 1030;
  config.semantic_end = config.semantic_begin + 1029;
  config.vocab_size = config.semantic_end + 3;
  const Case c = random_case(config, random);
  const CheckpointFile file(c.weights, DType::bf16);
  expect_agreement(c, run(c, file, {.formats = DType::f32, .head_rows = HeadRows::all}), kF32Bound);
}

// One or two codebooks are the ends of the loop over passes.
TEST(DualAr, FewCodebooksWork) {
  for (int64_t codebooks : {1, 2}) {
    std::mt19937 random(17);
    Config config = testing::random_config(random);
    config.num_codebooks = codebooks;
    LmMachine machine;
    const DualAr model = DualAr::random(config, machine.context, {}, 5);
    LmDriver driver(model, machine.context, {.columns_per_sequence = 64});
    const auto prompt = testing::random_columns(config, 4, random);
    const auto frames = driver.generate(0, prompt, Sampling::defaults(config.family), 6);
    EXPECT_EQ(frames.size() % static_cast<size_t>(codebooks + 1), 0u);
  }
}

TEST(DualAr, ASemanticHeadIsASubsetOfTheWholeHead) {
  std::mt19937 random(11);
  const Case c = random_case(testing::random_config(random), random);
  const CheckpointFile file(c.weights, DType::bf16);
  const Outcome all = run(c, file, {.head_rows = HeadRows::all});
  const Outcome semantic = run(c, file, {.head_rows = HeadRows::semantic});
  const Config& config = c.config;
  const auto kept = static_cast<size_t>(config.semantic_end - config.semantic_begin + 2);
  ASSERT_EQ(semantic.logits.size(), 13 * kept);
  for (size_t row = 0; row < 13; ++row)
    for (size_t i = 0; i < kept; ++i) {
      const int32_t token = i + 1 == kept ? config.im_end : config.semantic_begin + static_cast<int32_t>(i);
      const size_t whole = row * static_cast<size_t>(config.vocab_size) + static_cast<size_t>(token);
      EXPECT_EQ(semantic.logits[row * kept + i], all.logits[whole]);
    }
}

// What speech is drawn from has the same bits as in a head without text rows.
void expect_rounded_text_rows(const Case& c, const CheckpointFile& file, const Formats& formats) {
  const Config& config = c.config;
  const auto begin = static_cast<ptrdiff_t>(std::min(config.im_end, config.semantic_begin));
  const auto end = static_cast<ptrdiff_t>(std::max(config.im_end, config.semantic_end)) + 1;
  const auto codes = static_cast<size_t>(config.codebook_size), width = static_cast<size_t>(config.slow.dim);
  const double least = formats.weights == DType::i8 ? 4e-3 : 3e-2;
  const Outcome all = run(c, file, {.formats = formats, .head_rows = HeadRows::all});
  const Outcome semantic = run(c, file, {.formats = formats, .head_rows = HeadRows::semantic});
  const std::vector<float>& hidden = all.slow.values.at(concat("layer.", config.slow_layers - 1));
  for (size_t row = 0; row < 13; ++row) {
    const auto logits = std::span(all.logits).subspan(row * static_cast<size_t>(config.vocab_size));
    const auto drawn = std::span(semantic.logits).subspan(row * (codes + 1), codes + 1);
    EXPECT_TRUE(std::ranges::equal(logits.subspan(static_cast<size_t>(config.semantic_begin), codes),
                                   drawn.first(codes)));
    EXPECT_EQ(logits[static_cast<size_t>(config.im_end)], drawn[codes]);
    const auto from = hidden.begin() + static_cast<std::ptrdiff_t>(row * width);
    const std::vector<double> exact =
        testing::reference_head(config, c.weights, {from, from + static_cast<std::ptrdiff_t>(width)});
    for (const auto& [first, last] : {std::pair<ptrdiff_t, ptrdiff_t>(0, begin), {end, config.vocab_size}}) {
      const double rounding = distance({logits.begin() + first, logits.begin() + last},
                                       {{exact.begin() + first, exact.begin() + last}});
      EXPECT_GT(rounding, least) << "of more bits?";
      EXPECT_LT(rounding, 5 * least);
    }
  }
}

TEST(DualAr, BesideQuantisedLayersOnlyTheTextRowsOfTheHeadAreRounded) {
  if (!ops::testing_on_cpu()) GTEST_SKIP() << "on a GPU the whole head has 16 bits";
  std::mt19937 random(12);
  Config config = testing::random_config(random);
  config.vocab_size = config.semantic_end + 41;
  Formats nibbles(DType::u4, DType::bf16, DType::bf16);
  nibbles.group = kUsualGroup;
  for (const int32_t im_end : {config.semantic_begin - 2, config.semantic_end + 3}) {
    config.im_end = im_end;
    const Case c = random_case(config, random);
    const CheckpointFile file(c.weights, DType::bf16);
    expect_rounded_text_rows(c, file, Formats(DType::i8, DType::bf16, DType::bf16));
    expect_rounded_text_rows(c, file, nibbles);
  }
}

TEST(DualAr, SteadyStateTakesNoMemory) {
  std::mt19937 random(5);
  const Config config = testing::random_config(random);
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {.formats = DType::bf16}, 1);
  LmDriver driver(model, machine.context, {.columns_per_sequence = 128});
  const auto prompt = testing::random_columns(config, 20, random);
  driver.generate(0, prompt, Sampling::defaults(config.family), 3);
  driver.generate(0, prompt, Sampling::defaults(config.family), 3);  // blocks are merged between steps
  const int64_t growths = machine.workspace.growths();
  driver.generate(0, prompt, Sampling::defaults(config.family), 0);
  EXPECT_EQ(machine.workspace.growths(), growths);
}

TEST(DualAr, ReportsItsBytes) {
  Config config = Config::s1_mini();
  config.vocab_size = 1024;
  config.semantic_begin = 512;
  config.semantic_end = 575;
  config.im_end = 3;
  config.codebook_size = 64;
  config.slow_layers = 2;
  config.fast_layers = 1;
  LmMachine machine;
  const DualAr model = DualAr::random(config, machine.context, {.formats = DType::bf16}, 1);
  const DualAr::Bytes bytes = model.memory();
  const int64_t slow = 2 * 2 * (440466432 / 28), fast = 2 * (50339840 / 4);
  const auto near = [](int64_t actual, int64_t exact) {  // norms are f32; packing may pad
    return actual >= exact && actual <= exact + exact / 20 + 65536;
  };
  EXPECT_TRUE(near(bytes.slow_layers, slow)) << bytes.slow_layers;
  EXPECT_TRUE(near(bytes.fast_layers, fast)) << bytes.fast_layers;
  EXPECT_TRUE(near(bytes.head, 2 * 1024 * 1024)) << bytes.head;
  EXPECT_TRUE(near(bytes.embeddings, 2 * 1024 * (1024 + 640 + 64))) << bytes.embeddings;
  EXPECT_EQ(model.bytes_per_frame(),
            bytes.slow_layers + bytes.head + 9 * (bytes.fast_layers + bytes.fast_head));
  EXPECT_EQ(KvCache::bytes_per_token(Config::s1_mini(), DType::bf16), 114688);
  EXPECT_EQ(KvCache(config, 3, 16, DType::bf16).bytes(), 3 * 16 * 114688 / 28 * 2);
}

class LoadErrors : public ::testing::Test {
 protected:
  LoadErrors() : random_(1), config_(testing::random_config(random_)) {
    weights_ = testing::random_weights(config_, random_);
  }
  Error load(const LoadOptions& options = {}, DType dtype = DType::bf16) {
    const CheckpointFile file(weights_, dtype);
    LmMachine machine;
    const auto checkpoint = weights::Checkpoint::open(file.path());
    try {
      DualAr::load(checkpoint, config_, machine.context, options);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::AnyOf(HasSubstr("dual_ar_test_"), HasSubstr("must")));
      return error;
    }
    return {ErrorCode::internal, "no error"};
  }

  std::mt19937 random_;
  Config config_;
  NamedWeights weights_;
};

TEST_F(LoadErrors, MissingTensorIsNamed) {
  weights_.erase("layers.0.attention.wqkv.weight");
  const Error error = load();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.message(), HasSubstr("layers.0.attention.wqkv.weight"));
}

TEST_F(LoadErrors, WrongShapeSaysWhatWasExpectedAndFound) {
  auto& weight = weights_.at("fast_norm.weight");
  weight.shape = {config_.fast.dim, 1};
  const Error error = load();
  EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("fast_norm.weight"), HasSubstr(concat(Shape{config_.fast.dim})),
                    HasSubstr(concat(weight.shape))));
}

TEST_F(LoadErrors, WrongDtypeIsNamed) {
  const Error error = load({}, DType::i32);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("embeddings.weight"), HasSubstr("I32")));
}

TEST_F(LoadErrors, UnsetTokenIdsAndOtherDtypesAreRefused) {
  if (ops::testing_on_cpu()) {
    EXPECT_EQ(load({.formats = DType::f16}).code(), ErrorCode::unsupported);
  }
  EXPECT_EQ(load({.formats = DType::i8}).code(), ErrorCode::unsupported);
  config_.im_end = -1;
  EXPECT_EQ(load().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace shoal::dual_ar
