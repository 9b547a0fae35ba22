// What "auto" takes.
#include <gmock/gmock.h>

#include "ops/cpu_features.h"
#include "ops/device_state.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/kokoro/kokoro_testing.h"
#include "shoal/model.h"

namespace shoal::runtime {
namespace {

constexpr Device kThisCpu{DeviceKind::cpu, 0}, kSomeGpu{DeviceKind::cuda, 0};

// Restores the instruction set.
class OnIsa {
 public:
  explicit OnIsa(ops::CpuIsa isa) { ops::set_cpu_isa(isa); }
  ~OnIsa() { ops::set_cpu_isa(before_); }
  OnIsa(const OnIsa&) = delete;
  OnIsa& operator=(const OnIsa&) = delete;

 private:
  const ops::CpuIsa before_ = ops::cpu_isa();
};

TEST(AutomaticPrecision, TakesTheFastestThatCostsNothing) {
  struct Row {
    AutomaticFacts facts;  // stored in 16 bits, bfloat16 is free, the device has it
    DType expected;
  };
  const Row rows[] = {
      {{false, false, false}, DType::f32}, {{false, false, true}, DType::f32},
      {{false, true, false}, DType::f32},  {{false, true, true}, DType::bf16},
      {{true, false, false}, DType::bf16}, {{true, false, true}, DType::bf16},
      {{true, true, false}, DType::bf16},  {{true, true, true}, DType::bf16},
  };
  for (const auto& [facts, expected] : rows)
    EXPECT_EQ(automatic_dtype(facts), expected)
        << facts.stored_in_16_bits << facts.bf16_is_free << facts.has_bf16;
}

TEST(AutomaticPrecision, KnowsWhichCpusAreMadeForBfloat16) {
  EXPECT_TRUE(ops::has_products_of(kSomeGpu, DType::bf16));
  EXPECT_FALSE(ops::has_products_of(kThisCpu, DType::f16));
  for (const auto isa : {ops::CpuIsa::portable, ops::CpuIsa::avx2, ops::CpuIsa::avx512,
                         ops::CpuIsa::avx512_bf16, ops::CpuIsa::amx}) {
    if (isa > ops::best_cpu_isa()) continue;
    const OnIsa on(isa);
    EXPECT_TRUE(ops::has_products_of(kThisCpu, DType::f32));
    EXPECT_EQ(ops::has_products_of(kThisCpu, DType::bf16), isa >= ops::CpuIsa::avx512_bf16)
        << ops::name_of(isa);
  }
}

// The folder's checkpoint is in float32.
TEST(AutomaticPrecision, OfKokoroDependsOnTheDeviceUnlessItIsChosen) {
  const testing::KokoroFolder folder;
  const auto on_cpu = [&](Precision precision) {
    return kokoro_sizes(folder.folder().path(), precision, kThisCpu).dtype;
  };
  EXPECT_EQ(choose_dtype(Precision::automatic, kSomeGpu, nullptr), DType::bf16);
  EXPECT_EQ(choose_dtype(Precision::float32, kSomeGpu, nullptr), DType::f32);
  {
    const OnIsa plain(ops::CpuIsa::portable);
    EXPECT_EQ(on_cpu(Precision::automatic), DType::f32);
    EXPECT_EQ(on_cpu(Precision::bfloat16), DType::bf16);
  }
  if (ops::best_cpu_isa() < ops::CpuIsa::avx512_bf16) GTEST_SKIP() << "this CPU has no instructions for it";
  EXPECT_EQ(on_cpu(Precision::automatic), DType::bf16);
  EXPECT_EQ(on_cpu(Precision::float32), DType::f32);
}

// What is planned, loaded and shown is one choice.
TEST(AutomaticPrecision, OfKokoroIsTheSameEverywhere) {
  const testing::KokoroFolder folder;
  EngineConfig config = folder.config();
  config.precision = Precision::automatic;
  config.device = "cpu";
  for (const auto isa : {ops::CpuIsa::portable, ops::best_cpu_isa()}) {
    const OnIsa on(isa);
    const std::string expected = isa >= ops::CpuIsa::avx512_bf16 ? "bfloat16" : "float32";
    EXPECT_EQ(estimate_memory(config).formats.precision, expected);
    Engine engine(config);
    engine.start();
    EXPECT_EQ(engine.health().formats.precision, expected);
    if (resolve_device("auto") != "cpu") continue;
    EXPECT_THAT(inspect_model(config.model).remarks,
                ::testing::Contains(
                    ::testing::Field(&ReportLine::text, ::testing::HasSubstr("auto takes " + expected))));
  }
}

}  // namespace
}  // namespace shoal::runtime
