#include "models/dual_ar/calibration.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "models/dual_ar/random_model_testing.h"
#include "models/dual_ar/reference_testing.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

using testing::Matrix;

// What the products of one layer read.
struct Seen final : BlockObserver {
  void reads(Product product, TensorView rows) override {
    for (int64_t row = 0; row < rows.dim(0); ++row)
      values[product].emplace_back(rows.row<float>(row), rows.row<float>(row) + rows.dim(1));
  }
  std::map<Product, Matrix> values;
};

// y += W x, and W of the layer by name.
void add_product(const testing::NamedWeight& weight, const std::vector<double>& x, std::vector<double>& y) {
  for (size_t n = 0; n < y.size(); ++n)
    for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight.values[n * x.size() + k]} * x[k];
}

std::vector<double> normed(const std::vector<double>& x, const testing::NamedWeight& weight, double eps) {
  double square = 0;
  for (const double value : x) square += value * value;
  std::vector<double> y = x;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] *= double{weight.values[i]} / std::sqrt(square / static_cast<double>(x.size()) + eps);
  return y;
}

double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) difference += std::pow(a[i] - b[i], 2), norm += b[i] * b[i];
  return std::sqrt(difference / norm);
}

class Calibrated : public ::testing::Test {
 protected:
  void load(const Config& config, std::mt19937& random) {
    config_ = config;
    weights_ = testing::random_weights(config, random);
    const testing::CheckpointFile file(weights_, DType::f32);
    model_.emplace(DualAr::load(weights::Checkpoint::open(file.path()), config, ctx_,
                                {.head_rows = HeadRows::semantic}));
  }
  // Row i of the layer reads what the block before it left, and adds its two products to that.
  void expect_rows(const std::string& layer, const BlockConfig& config, const Seen& seen, size_t first,
                   const Matrix& before, const Matrix& after) {
    for (size_t row = 0; row < before.size(); ++row) {
      const auto of = [&](BlockObserver::Product product) { return seen.values.at(product).at(first + row); };
      EXPECT_LT(
          distance_of(of(BlockObserver::kQkv),
                      normed(before[row], weights_.at(layer + "attention_norm.weight"), config.norm_eps)),
          1e-4)
          << layer;
      std::vector<double> x = before[row];
      add_product(weights_.at(layer + "attention.wo.weight"), of(BlockObserver::kOut), x);
      if (config.out_bias)
        for (size_t i = 0; i < x.size(); ++i)
          x[i] += double{weights_.at(layer + "attention.wo.bias").values[i]};
      EXPECT_LT(distance_of(of(BlockObserver::kGateUp),
                            normed(x, weights_.at(layer + "ffn_norm.weight"), config.norm_eps)),
                1e-4)
          << layer;
      add_product(weights_.at(layer + "feed_forward.w2.weight"), of(BlockObserver::kDown), x);
      EXPECT_LT(distance_of(x, after[row]), 1e-4) << layer;
    }
  }

  ThreadTeam team_{2};
  Workspace workspace_;
  ops::Context ctx_{.device = {}, .team = &team_, .workspace = &workspace_};
  Config config_;
  testing::NamedWeights weights_;
  std::optional<DualAr> model_;
};

TEST_F(Calibrated, LayersReadWhatTheLayersBeforeThemLeave) {
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) {
    load(testing::random_config(random), random);
    std::vector<SpokenColumns> spoken;
    for (const int64_t prompt : {5, 1, 9}) {
      spoken.push_back({testing::random_columns(config_, prompt, random), prompt});
      for (int frame = 0; frame < 3; ++frame) {  // of codes that the fast transformer can read
        std::vector<int32_t> column{config_.semantic_begin};
        for (int64_t k = 0; k < config_.num_codebooks; ++k)
          column.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(config_.residual_codes())));
        column[0] += column[1];
        spoken.back().columns.insert(spoken.back().columns.end(), column.begin(), column.end());
      }
    }
    LayerReplay replay(ctx_, *model_, spoken);
    std::vector<testing::ReferenceSlow> expected;
    for (const SpokenColumns& s : spoken) expected.push_back(reference_slow(config_, weights_, s.columns));
    for (int64_t layer = 0; layer < config_.slow_layers; ++layer) {
      Seen seen;
      replay.run_layer(ctx_, seen);
      size_t first = 0;
      for (const testing::ReferenceSlow& slow : expected) {
        const auto at = static_cast<size_t>(layer);
        expect_rows(concat("layers.", layer, "."), config_.slow, seen, first,
                    layer == 0 ? slow.embed : slow.layers[at - 1], slow.layers[at]);
        first += slow.embed.size();
      }
      EXPECT_EQ(seen.values[BlockObserver::kQkv].size(), first);
    }
    for (int64_t layer = 0; layer < config_.fast_layers; ++layer) {
      Seen seen;
      replay.run_layer(ctx_, seen);
      size_t first = 0;
      for (size_t s = 0; s < spoken.size(); ++s)
        for (int64_t at = spoken[s].prompt; at < spoken[s].prompt + 3; ++at) {
          const auto codes = std::span(spoken[s].columns)
                                 .subspan(static_cast<size_t>(at * config_.columns() + 1),
                                          static_cast<size_t>(config_.num_codebooks));
          const testing::ReferenceFast fast = reference_fast(
              config_, weights_, expected[s].layers.back()[static_cast<size_t>(at - 1)], codes);
          if (layer > 0)
            expect_rows(concat("fast_layers.", layer, "."), config_.fast, seen, first,
                        fast.layers[static_cast<size_t>(layer) - 1], fast.layers[static_cast<size_t>(layer)]);
          else
            EXPECT_LT(distance_of(seen.values.at(BlockObserver::kQkv).at(first),
                                  normed(fast.fast_in, weights_.at("fast_layers.0.attention_norm.weight"),
                                         config_.fast.norm_eps)),
                      1e-4);
          first += static_cast<size_t>(config_.num_codebooks);
        }
      EXPECT_EQ(seen.values[BlockObserver::kDown].size(), first);
    }
    EXPECT_THROW(
        {
          Seen seen;
          replay.run_layer(ctx_, seen);
        },
        Error);
  }
}

TEST_F(Calibrated, PromptsAreSpokenTogetherAsEachAlone) {
  std::mt19937 random(8);
  for (int i = 0; i < 3; ++i) {
    load(testing::random_config(random), random);
    std::vector<std::vector<int32_t>> prompts;
    for (int p = 0; p < 11; ++p)
      prompts.push_back(testing::random_columns(config_, 1 + static_cast<int64_t>(random() % 9), random));
    Sampling sampling = Sampling::defaults(config_.family);
    sampling.seed = 5, sampling.quirks.semantic_only = true;
    std::vector<size_t> told;
    const auto spoken =
        speak_prompts(ctx_, *model_, prompts, 6, sampling, [&](size_t count) { told.push_back(count); });
    EXPECT_EQ(told, (std::vector<size_t>{8, 11}));
    ASSERT_EQ(spoken.size(), prompts.size());
    for (size_t p = 0; p < prompts.size(); ++p, ++sampling.seed) {
      parity::LmDriver driver(*model_, ctx_, {.columns_per_sequence = 32, .page_size = 32});
      std::vector<int32_t> expected = prompts[p], frames = driver.generate(0, prompts[p], sampling, 6);
      EXPECT_EQ(spoken[p].prompt, std::ssize(prompts[p]) / config_.columns());
      // The frame that ends the speech is left out.
      expected.insert(expected.end(), frames.begin(), frames.end());
      ASSERT_LE(spoken[p].columns.size(), expected.size());
      ASSERT_GE(spoken[p].columns.size(), expected.size() - static_cast<size_t>(config_.columns()));
      expected.resize(spoken[p].columns.size());
      EXPECT_EQ(spoken[p].columns, expected);
    }
  }
}

}  // namespace
}  // namespace shoal::dual_ar
