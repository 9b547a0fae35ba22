#include "server/access/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace shoal::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Usage::Time kStart = Usage::Time{} + hours(1000);

// 0: accepted; otherwise the seconds after which to ask again.
int refused_for(const std::function<void()>& use) {
  try {
    use();
    return 0;
  } catch (const OverLimit& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    return error.retry_after_s();
  }
}

TEST(UsageOfKeys, EachKeyIsCountedByItself) {
  Usage usage;
  usage.add_request("ann", kStart);
  usage.add_characters("ann", 40, kStart);
  usage.add_sound("ann", 1.5);
  usage.add_sound("ann", 0.25);
  usage.add_request("bob", kStart);
  usage.give_back("ann", 10);
  const KeyUsage ann = usage.of("ann", kStart);
  EXPECT_EQ(ann.requests, 1u);
  EXPECT_EQ(ann.characters, 30u);
  EXPECT_EQ(ann.sound_s, 1.75);
  EXPECT_TRUE(ann.limits.empty());
  EXPECT_EQ(usage.of("bob", kStart).characters, 0u);
  EXPECT_EQ(usage.all(kStart).size(), 2u);
  EXPECT_EQ(usage.of("nobody", kStart).requests, 0u);
}

TEST(UsageOfKeys, RequestsAMinuteAreLimited) {
  Usage usage;
  usage.set_limits({{"ann", {2, 0, 0}}});
  const auto ask = [&](int after_s, const char* key = "ann") {
    return refused_for([&] { usage.add_request(key, kStart + seconds(after_s)); });
  };
  EXPECT_EQ(ask(0), 0);
  EXPECT_EQ(ask(50), 0);
  EXPECT_EQ(ask(51), 9);
  EXPECT_EQ(ask(51, "bob"), 0) << "another key";
  EXPECT_EQ(usage.of("ann", kStart + seconds(51)).requests, 2u) << "a refused request is not counted";
  EXPECT_EQ(ask(60), 0);
}

TEST(UsageOfKeys, CharactersAMinuteAndADayAreLimitedTogether) {
  Usage usage;
  usage.set_limits({{"ann", {0, 100, 150}}});
  const auto speak = [&](int64_t characters, int after_s) {
    return refused_for([&] { usage.add_characters("ann", characters, kStart + seconds(after_s)); });
  };
  EXPECT_EQ(speak(100, 0), 0);
  EXPECT_EQ(speak(1, 10), 50);
  EXPECT_EQ(speak(60, 70), 86'400 - 70) << "of the day 50 are left, and of the minute nothing is taken";
  EXPECT_EQ(speak(50, 71), 0);
  EXPECT_EQ(speak(1, 86'399), 1);
  EXPECT_EQ(speak(100, 86'400), 0);
}

TEST(UsageOfKeys, WhatIsNotSpokenIsLeft) {
  Usage usage;
  usage.set_limits({{"ann", {0, 100, 0}}});
  usage.add_characters("ann", 100, kStart);
  usage.give_back("ann", 100);
  EXPECT_EQ(refused_for([&] { usage.add_characters("ann", 100, kStart); }), 0);
}

TEST(UsageOfKeys, ATextLongerThanALimitIsToldToBeSplit) {
  Usage usage;
  usage.set_limits({{"ann", {0, 100, 0}}});
  try {
    usage.add_characters("ann", 101, kStart);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_large);
    EXPECT_THAT(error.message(), HasSubstr("may speak 100 characters a minute"));
  }
}

TEST(UsageOfKeys, HeadersTellWhatIsLeft) {
  Usage usage;
  usage.set_limits({{"ann", {3, 0, 500}}});
  usage.add_request("ann", kStart);
  usage.add_characters("ann", 120, kStart + seconds(5));
  const Headers headers = usage.headers("ann", kStart + seconds(20));
  const auto value = [&](const char* name) {
    const std::string* found = headers.find(name);
    return found ? *found : "";
  };
  EXPECT_EQ(value("x-ratelimit-limit-requests"), "3");
  EXPECT_EQ(value("x-ratelimit-remaining-requests"), "2");
  EXPECT_EQ(value("x-ratelimit-reset-requests"), "40s");
  EXPECT_EQ(value("x-ratelimit-remaining-characters-day"), "380");
  EXPECT_EQ(value("x-ratelimit-reset-characters-day"), "86385s");
  EXPECT_EQ(value("x-ratelimit-limit-characters"), "");
  EXPECT_EQ(usage.headers("bob", kStart).begin(), usage.headers("bob", kStart).end());
}

// Whatever is asked, no window of a minute that began with a use holds more than the limit.
TEST(UsageOfKeys, NoWindowHoldsMoreThanItsLimit) {
  std::mt19937 random(11);
  Usage usage;
  usage.set_limits({{"ann", {0, 1000, 0}}});
  int64_t begun_ms = 0, spoken = 0;
  uint64_t in_all = 0;
  for (int64_t now_ms = 0; now_ms < 3'000'000; now_ms += 1 + random() % 4000) {
    if (spoken > 0 && now_ms - begun_ms >= 60'000) spoken = 0;
    const int64_t characters = 1 + random() % 300;
    const bool fits = spoken + characters <= 1000;
    const auto use = [&] {
      usage.add_characters("ann", characters, kStart + std::chrono::milliseconds(now_ms));
    };
    ASSERT_EQ(refused_for(use) == 0, fits) << now_ms;
    if (!fits) continue;
    if (spoken == 0) begun_ms = now_ms;
    spoken += characters;
    in_all += static_cast<uint64_t>(characters);
  }
  EXPECT_EQ(usage.of("ann").characters, in_all);
}

}  // namespace
}  // namespace shoal::server
