#include "models/dual_ar/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "base/error.h"
#include "models/dual_ar/dual_ar.h"
#include "models/dual_ar/random_model_testing.h"
#include "ops/attention.h"
#include "ops/transfer.h"
#include "tests/parity/lm_driver.h"

namespace shoal::dual_ar {
namespace {

constexpr int64_t kPageSize = 5;

// Sequences whose page tables the test writes itself.
class Pages {
 public:
  explicit Pages(const DualAr& model)
      : model_(model), cache_(model.config(), 12, kPageSize, model.formats().kv, machine_.device) {}

  KvCache& cache() { return cache_; }
  ops::Context& context() { return machine_.context; }

  // Computes `columns` as positions first, first + 1, ... of the sequence that owns `table`. The hidden
  // state after the last.
  std::vector<float> forward(const std::vector<int32_t>& table, int64_t first,
                             std::span<const int32_t> columns) {
    const auto count = static_cast<int32_t>(static_cast<int64_t>(columns.size()) / model_.config().columns());
    std::vector<int32_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    const std::vector<int32_t> offsets = {0, count};
    const ops::BatchPlan plan{.rows = {offsets},
                              .positions = positions,
                              .page_table = table,
                              .pages_per_sequence = static_cast<int64_t>(table.size()),
                              .page_size = kPageSize};
    const Tensor hidden = Tensor::zeros(DType::f32, {1, model_.config().slow.dim}, machine_.device);
    model_.forward_slow(machine_.context, plan, columns, cache_, hidden);
    const Tensor values = ops::to_host(machine_.context, hidden);
    return {values.as<float>(), values.as<float>() + values.elements()};
  }

 private:
  const DualAr& model_;
  parity::LmMachine machine_{2};
  KvCache cache_;
};

// Whether the device of the tests attends to such pages in heads as small as these models have.
bool has_pages_of(DType kv) {
  parity::LmMachine machine;
  constexpr int64_t kHeadDim = 8;
  return ops::can_attend(machine.device, kHeadDim, kv);
}

class CopiedPage : public ::testing::TestWithParam<Formats> {};

// Two prompts are equal up to the middle of a page; the second begins with copies of the pages of the first,
// while the first continues after the common columns of that page.
TEST_P(CopiedPage, ASequenceOnACopiedPageContinuesLikeAColdOne) {
  if (!has_pages_of(GetParam().kv)) GTEST_SKIP() << "a GPU attends to 8 bits in heads of 32, 64 or 128";
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    std::mt19937 random(seed);
    const Config config = testing::random_config(random);
    parity::LmMachine machine;
    const DualAr model = DualAr::random(config, machine.context, {.formats = GetParam()}, seed);
    const auto width = static_cast<size_t>(config.columns());
    constexpr size_t kCommon = 12, kWhole = 21;  // two full pages and two columns
    const auto first = testing::random_columns(config, kWhole, random);
    auto second = testing::random_columns(config, kWhole, random);
    std::copy_n(first.begin(), kCommon * width, second.begin());
    const std::span<const int32_t> a = first, b = second;

    Pages pages(model);
    const std::vector<int32_t> table_a = {7, 2, 9, 4, 0}, table_b = {7, 2, 5, 11, 3};
    pages.forward(table_a, 0, a.first(14 * width));  // its tail page: 12 and 13 are its own
    pages.cache().copy_page(pages.context(), 9, 5);
    const auto last_a = pages.forward(table_a, 14, a.subspan(14 * width));
    const auto last_b = pages.forward(table_b, kCommon, b.subspan(kCommon * width));

    Pages cold(model);
    EXPECT_EQ(last_a, cold.forward({0, 1, 2, 3, 4}, 0, a)) << "seed " << seed;
    const auto want_b = cold.forward({5, 6, 7, 8, 9}, 0, b);
    ASSERT_EQ(last_b.size(), want_b.size());
    EXPECT_EQ(std::memcmp(last_b.data(), want_b.data(), last_b.size() * sizeof(float)), 0) << "seed " << seed;
    EXPECT_NE(last_a, last_b);
  }
}

// Keys and values have a dtype of their own.
INSTANTIATE_TEST_SUITE_P(Formats, CopiedPage,
                         ::testing::Values(Formats(DType::f32), Formats(DType::bf16),
                                           Formats(DType::bf16, DType::bf16, DType::f32),
                                           Formats(DType::f32, DType::f32, DType::bf16),
                                           Formats(DType::f32, DType::f32, DType::i8),
                                           Formats(DType::bf16, DType::bf16, DType::i8)),
                         [](const auto& suite) {
                           return concat(name_of(suite.param.weights), "_keys_", name_of(suite.param.kv));
                         });

// Keys and values of 16 or 8 bits are rounded, and nothing else is.
TEST(KvCache, NarrowKeysChangeTheHiddenStateByTheirRounding) {
  std::mt19937 random(6);
  const Config config = testing::random_config(random);
  const auto columns = testing::random_columns(config, 21, random);
  const auto hidden = [&](const Formats& formats) {
    parity::LmMachine machine;
    const DualAr model = DualAr::random(config, machine.context, {.formats = formats}, 6);
    Pages pages(model);
    EXPECT_EQ(pages.cache().dtype(), formats.kv);
    return pages.forward({7, 2, 9, 4, 0}, 0, columns);
  };
  const auto exact = hidden(DType::f32);
  for (const DType kv : {DType::bf16, DType::i8}) {
    if (!has_pages_of(kv)) continue;
    const auto narrow = hidden({DType::f32, DType::f32, kv});
    ASSERT_EQ(exact.size(), narrow.size());
    double largest = 0, error = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest, std::abs(double{exact[i]}));
      error = std::max(error, std::abs(double{exact[i]} - narrow[i]));
    }
    EXPECT_GT(error, 0) << name_of(kv);
    // Some roundings for each of the layers: of 2^-9 of a value, or of 2^-8 of the largest of its head.
    EXPECT_LT(error, 0x1p-5 * largest) << name_of(kv);
  }
}

// A head of a token: its values in a byte each, and a scale of two bytes.
TEST(KvCache, EightBitsTakeAByteAValueAndAScaleAHead) {
  const Config config = Config::s1_mini();
  const int64_t heads = config.slow_layers * 2 * config.slow.kv_heads;
  EXPECT_EQ(KvCache::bytes_per_token(config, DType::i8), heads * (config.slow.head_dim + 2));
  std::mt19937 random(3);
  const Config tiny = testing::random_config(random);
  EXPECT_EQ(KvCache(tiny, 5, 4, DType::i8).bytes(), 20 * KvCache::bytes_per_token(tiny, DType::i8));
}

TEST(KvCache, CopiesOnlyBetweenItsOwnPages) {
  std::mt19937 random(5);
  const Config config = testing::random_config(random);
  parity::LmMachine machine;
  KvCache cache(config, 3, kPageSize, DType::f32, machine.device);
  EXPECT_NO_THROW(cache.copy_page(machine.context, 0, 2));
  EXPECT_THROW(cache.copy_page(machine.context, 0, 3), Error);
  EXPECT_THROW(cache.copy_page(machine.context, -1, 0), Error);
  EXPECT_THROW(cache.copy_page(machine.context, 1, 1), Error);
}

}  // namespace
}  // namespace shoal::dual_ar
