#include "runtime/families/language/codec_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

#include "base/error_testing.h"

namespace shoal::runtime {
namespace {

constexpr ThreadSplit kOnAGpu{.decode = 2, .codec = 1}, kWithoutCodecThread{.decode = 2, .codec = 0};

EngineConfig config_of(int max_batch_size, int codec_multiprocessors = -1) {
  EngineConfig config;
  config.max_batch_size = max_batch_size;
  config.codec_multiprocessors = codec_multiprocessors;
  return config;
}

TEST(CodecPart, IsAutomaticWhereItWasMeasured) {
  EXPECT_EQ(codec_part(config_of(64), kOnAGpu, 132), 64);
  for (const int other : {0, 20, 84, 108, 128, 148}) EXPECT_EQ(codec_part(config_of(64), kOnAGpu, other), 0);
}

TEST(CodecPart, IsWhatWasAskedForOnAnyGpu) {
  EXPECT_EQ(codec_part(config_of(64, 48), kOnAGpu, 132), 48);
  EXPECT_EQ(codec_part(config_of(64, 48), kOnAGpu, 84), 48);
  EXPECT_EQ(codec_part(config_of(64, 0), kOnAGpu, 132), 0);
}

TEST(CodecPart, FewSequencesOrOneThreadNeedNone) {
  EXPECT_EQ(codec_part(config_of(8), kOnAGpu, 132), 0);
  EXPECT_EQ(codec_part(config_of(64), kWithoutCodecThread, 132), 0);
  EXPECT_FALSE(may_divide(config_of(8), kOnAGpu));
  EXPECT_TRUE(may_divide(config_of(48), kOnAGpu));
}

TEST(CodecPart, WhatWouldNeverTakeEffectIsRefused) {
  for (const auto& [config, split] :
       {std::pair{config_of(47, 64), kOnAGpu}, {config_of(64, 64), kWithoutCodecThread}})
    EXPECT_EQ(error_of([&] { codec_part(config, split, 132); }).code(), ErrorCode::invalid_argument);
}

TEST(CodecPart, LargeModelsDivideNothingOnTheirOwn) {
  constexpr int64_t kS1 = 1'850'000'000, kS2 = 14'800'000'000;
  EXPECT_TRUE(is_worth_dividing(config_of(64), kS1));
  EXPECT_FALSE(is_worth_dividing(config_of(64), kS2));
  EXPECT_TRUE(is_worth_dividing(config_of(64, 64), kS2));
}

TEST(CodecPart, AllMultiprocessorsAreTooManyAndACpuHasNone) {
  for (const auto& [all, why] :
       {std::pair{64, "fewer than the device has (64), got 64"}, {0, "on the CPU"}}) {
    const Error error = error_of([&] { codec_part(config_of(64, 64), kOnAGpu, all); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr(why));
  }
}

}  // namespace
}  // namespace shoal::runtime
