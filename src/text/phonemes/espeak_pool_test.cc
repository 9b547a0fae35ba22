#include "text/phonemes/espeak_pool.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "base/eventually_testing.h"
#include "text/phonemes/refusal_testing.h"

namespace shoal::phonemes {
namespace {

using ::testing::HasSubstr;

std::string say(EspeakPool& pool, Language language, const std::string& text) {
  return pool.phonemes(language, std::span(&text, 1)).at(0);
}

// Of a pool with little patience, which a helper that starts may need more of.
bool says(EspeakPool& pool, const std::string& text, const std::string& phonemes) {
  return eventually([&] {
    try {
      return say(pool, Language::american, text) == phonemes;
    } catch (const Error&) {
      return false;
    }
  });
}

TEST(EspeakProtocol, MessagesRoundTrip) {
  const Message message{MessageKind::failed, {"", "a", std::string(70'000, 'x'), std::string("\0b", 2)}};
  const std::string bytes = pack(message);
  EXPECT_EQ(read_length(bytes), bytes.size() - kLengthBytes);
  const std::optional<Message> again = unpack(std::string_view(bytes).substr(kLengthBytes));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, message.kind);
  EXPECT_EQ(again->strings, message.strings);
}

TEST(EspeakProtocol, InconsistentBytesAreNoMessage) {
  using std::string_view;
  EXPECT_FALSE(unpack(""));
  EXPECT_FALSE(unpack("\x03"));
  EXPECT_FALSE(unpack(string_view("\0\x01", 2)));
  EXPECT_FALSE(unpack(string_view("\0\x02\0\0\0x", 6)));
  EXPECT_FALSE(unpack(string_view("\0\xff\xff\xff\xffx", 6)));
}

TEST(EspeakPool, WithoutTheProgramSaysWhatToInstall) {
  EspeakPool pool({.program = "/no/such/shoal-phonemizer"});
  const Error error = refusal([&] { say(pool, Language::american, "hi"); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("/no/such/shoal-phonemizer"));
  EXPECT_THAT(error.message(), HasSubstr("install it"));
  // The next one finds the pool as it was.
  EXPECT_EQ(refusal([&] { pool.version(); }).code(), ErrorCode::unavailable);
}

TEST(EspeakPool, AHelperThatExitsOrSaysNothingIsAnError) {
  EspeakPool ends({.program = "/bin/false"});
  const Error error = refusal([&] { say(ends, Language::american, "hi"); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("exit code 1"));
  EXPECT_THAT(error.message(), HasSubstr("libespeak-ng1"));

  EspeakPool hangs({.program = "/bin/cat", .timeout_ms = 50});
  EXPECT_THAT(refusal([&] { say(hangs, Language::american, "hi"); }).message(),
              HasSubstr("not ready within 50 ms"));
}

TEST(EspeakPool, OptionsAndTextsOutOfRangeAreRefused) {
  EXPECT_EQ(refusal([] { EspeakPool({.helpers = 0}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal([] { EspeakPool({.helpers = 65}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal([] { EspeakPool({.timeout_ms = 0}); }).code(), ErrorCode::invalid_argument);
  EspeakPool pool({.program = "/no/such/program"});
  for (const std::string& text : {std::string("a\0b", 3), std::string("\xff"), std::string(4097, 'a')})
    EXPECT_EQ(refusal([&] { say(pool, Language::american, text); }).code(), ErrorCode::invalid_argument);
}

#ifdef SHOAL_BUILD_PHONEMIZER

std::string wide_text(int seed) {
  std::string text = "number " + std::to_string(seed * 7919 % 1000) + " and";
  for (const char* word : {"water", "schedule", "tomato", "vision", "church"})
    text += seed >> (word[0] % 4) & 1 ? std::string(" ") + word : " the";
  return text;
}

TEST(EspeakPool, StartsNoHelperBeforeTheFirstRequest) {
  EspeakPool pool({.helpers = 4});
  EXPECT_TRUE(pool.pids().empty());
  EXPECT_EQ(say(pool, Language::american, "merchantship"), "mˈɜɹʧəntʃˌɪp");
  EXPECT_EQ(pool.pids().size(), 1u);
  EXPECT_TRUE(pool.to_ipa(Language::american, {}).empty());
}

TEST(EspeakPool, SwitchesLanguages) {
  EspeakPool pool({.helpers = 1});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(say(pool, Language::american, "schedule"), "skˈɛʤul");
    EXPECT_EQ(say(pool, Language::british, "schedule"), "ʃˈɛdjuːl");
    EXPECT_EQ(say(pool, Language::spanish, "hola"), "ˈola");
    EXPECT_EQ(say(pool, Language::french, "bonjour"), "bɔ\u0303ʒˈuʁ");
  }
}

TEST(EspeakPool, AMissingLanguageIsRefusedAndLaterTextsAreUnaffected) {
  EspeakProcess process(find_phonemizer(), 60'000);
  Message answer;
  ASSERT_EQ(process.exchange({MessageKind::ok, {"en-us", "schedule"}}, answer, 60'000),
            EspeakProcess::Outcome::answered);
  const std::vector<std::string> american = answer.strings;
  for (const char* language : {"xx", "", "en-us-nowhere", "gmw/en-US", "en\xff"}) {
    ASSERT_EQ(process.exchange({MessageKind::ok, {language, "schedule"}}, answer, 60'000),
              EspeakProcess::Outcome::answered);
    EXPECT_EQ(answer.kind, MessageKind::no_such_language) << language;
  }
  ASSERT_EQ(process.exchange({MessageKind::ok, {"en-us", "schedule"}}, answer, 60'000),
            EspeakProcess::Outcome::answered);
  EXPECT_EQ(answer.strings, american);
  ASSERT_EQ(process.exchange({MessageKind::ok, {}}, answer, 60'000), EspeakProcess::Outcome::answered);
  EXPECT_EQ(answer.kind, MessageKind::failed);
}

TEST(EspeakPool, ManyTextsAreOneCallAndStayInOrder) {
  EspeakPool pool({.helpers = 1});
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(wide_text(i));
  const std::vector<std::string> together = pool.phonemes(Language::american, texts);
  ASSERT_EQ(together.size(), texts.size());
  for (int i = 0; i < 3000; i += 97) EXPECT_EQ(together[i], say(pool, Language::american, texts[i]));
}

TEST(EspeakPool, EightThreadsGetTheSamePhonemesAsOne) {
  const Language languages[] = {Language::american, Language::british, Language::spanish, Language::italian};
  std::vector<std::string> alone;
  {
    EspeakPool pool({.helpers = 1});
    for (int i = 0; i < 200; ++i) alone.push_back(say(pool, languages[i % 4], wide_text(i)));
  }
  EspeakPool pool({.helpers = 3, .timeout_ms = 600'000});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 200; ++k) {
        const int i = (k * 37 + t * 25) % 200;
        if (say(pool, languages[i % 4], wide_text(i)) != alone[static_cast<size_t>(i)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(pool.pids().size(), 3u);
}

TEST(EspeakPool, ADeadHelperIsReplaced) {
  EspeakPool pool({.helpers = 1});
  say(pool, Language::american, "hi");
  const pid_t first = pool.pids().at(0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_EQ(say(pool, Language::american, "merchantship"), "mˈɜɹʧəntʃˌɪp");
  EXPECT_NE(pool.pids().at(0), first);
}

TEST(EspeakPool, ARequestIsRepeatedWhenItsHelperIsKilled) {
  EspeakPool pool({.helpers = 1, .timeout_ms = 20'000});
  say(pool, Language::american, "hi");
  const pid_t first = pool.pids().at(0);
  ASSERT_EQ(::kill(first, SIGSTOP), 0);  // so that the request is surely under way
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(first, SIGKILL);
  });
  EXPECT_EQ(say(pool, Language::american, "merchantship"), "mˈɜɹʧəntʃˌɪp");
  killer.join();
}

TEST(EspeakPool, AHungHelperIsKilledAndItsTextRefused) {
  EspeakPool pool({.helpers = 1, .timeout_ms = 300});
  ASSERT_TRUE(says(pool, "merchantship", "mˈɜɹʧəntʃˌɪp"));
  const pid_t first = pool.pids().at(0);
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  const Error error = refusal([&] { say(pool, Language::american, "merchantship"); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("no answer within 300 ms"));
  EXPECT_EQ(::kill(first, 0), -1) << "it still runs";
  EXPECT_EQ(errno, ESRCH);
  EXPECT_TRUE(says(pool, "merchantship", "mˈɜɹʧəntʃˌɪp"));
}

TEST(EspeakPool, WaitingForABusyPoolIsBounded) {
  EspeakPool pool({.helpers = 1, .timeout_ms = 400});
  ASSERT_TRUE(says(pool, "hello", "həlˈO"));
  ASSERT_EQ(::kill(pool.pids().at(0), SIGSTOP), 0);
  std::atomic<int> refused = 0;
  std::atomic<int> said = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        say(pool, Language::american, "hello");
        ++said;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::unavailable || error.code() == ErrorCode::resource_exhausted)
          ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused + said, 4);
  EXPECT_GE(refused, 1);
  EXPECT_TRUE(says(pool, "hello", "həlˈO"));
}

TEST(EspeakPool, HelpersEndWithTheirPool) {
  pid_t pid = 0;
  {
    EspeakPool pool;
    say(pool, Language::american, "hi");
    pid = pool.pids().at(0);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(EspeakPool, HelpersInheritNoFilesAndNoProcessGroup) {
  const int ours = ::open("/etc/hostname", O_RDONLY);  // without O_CLOEXEC, as careless code does
  ASSERT_GE(ours, 0);
  EspeakPool pool;
  say(pool, Language::american, "hi");
  const std::string folder = "/proc/" + std::to_string(pool.pids().at(0)) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_NE(std::filesystem::read_symlink(entry.path()), "/etc/hostname");
  EXPECT_NE(::getpgid(pool.pids().at(0)), ::getpgid(0)) << "Ctrl-C would end it";
  ::close(ours);
}

TEST(EspeakPool, HostileTexts) {
  EspeakPool pool;
  std::vector<std::string> texts = {"",
                                    " ",
                                    "\n\n",
                                    ".",
                                    "(((((",
                                    "[[hello]]",
                                    "<speak><p>",
                                    "\xF0\x9F\x98\x80",
                                    "\u0301\u0301\u0301",
                                    std::string(4096, 'x'),
                                    std::string(4096, '1'),
                                    std::string(4096, '\x01'),
                                    "\u202Eabc",
                                    "你好"};
  const std::vector<std::string> said = pool.phonemes(Language::american, texts);
  ASSERT_EQ(said.size(), texts.size());
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[5], "həlˈO");
}

#endif

}  // namespace
}  // namespace shoal::phonemes
