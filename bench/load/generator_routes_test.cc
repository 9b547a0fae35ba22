// What a server gets, and what is heard of it, route by route.
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/base64.h"
#include "bench/load/fake_server_testing.h"
#include "bench/load/generator.h"
#include "bench/load/level_figures.h"
#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

std::string with_length(const std::string& type, const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}
// An answer that ends when the server closes.
std::string open_ended(const std::string& type) {
  return "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\n\r\n";
}
std::string finished_wav(int64_t frames, int16_t value = 8000) {
  WavHeader header;
  header.data_bytes = static_cast<uint32_t>(2 * frames);
  return header.text() + samples_of(frames, value);
}
std::string batch_line(const std::string& sound) {
  return R"({"audio_base64":")" + to_base64(sound) + R"(","sample_rate":24000})" + "\n";
}

GeneratorOptions asking(const std::string& url) {
  return {
      .target = make_target(url, "auto"), .question = {.texts = {"One.", "Two.", "Three."}}, .timeout_s = 20};
}

std::vector<RequestRecord> answers_to(const GeneratorOptions& options, const LevelPlan& plan) {
  std::vector<RequestRecord> records;
  Generator(options).run(plan, [&](RequestRecord&& record) { records.push_back(std::move(record)); });
  return records;
}

TEST(GeneratorRoutes, ABatchIsHeardItemByItemToAMillisecond) {
  const FakeServer server([](int) {
    return Script{{20, open_ended("application/x-ndjson")},
                  {20, batch_line(finished_wav(2'400))},
                  {20, batch_line(finished_wav(4'800))},
                  {5, ""}};
  });
  GeneratorOptions options = asking(server.url() + "/v1/tts/batch");
  options.question.items = 2;
  double off_ms = 1e9;
  const std::vector<RequestRecord> records = answers_to(options, {.requests = 10});
  for (int i = 0; i < 10; ++i) {
    const RequestRecord& record = records[static_cast<size_t>(i)];
    ASSERT_FALSE(record.failure) << record.failure->detail;
    const RequestFigures figures = figures_of(record);
    const auto true_ms = static_cast<double>(server.sent_us(i, 1) - record.due_us) / 1e3;
    off_ms = std::min(off_ms, *figures.first_sound_ms - true_ms);
    EXPECT_EQ(figures.sound_s, 0.3);
    EXPECT_EQ(record.characters, characters_of(texts_of(options.question, record.index)[0]) +
                                     characters_of(texts_of(options.question, record.index)[1]));
  }
  EXPECT_GE(off_ms, 0);
  EXPECT_LT(off_ms, 1);
}

// Half a second of sound, and nothing for 900 ms, twice: 400 ms of silence each time.
TEST(GeneratorRoutes, UnderrunsAreExact) {
  constexpr int64_t kHalf = 12'000;  // frames
  const FakeServer server([](int) {
    return Script{{0, open_ended("audio/wav") + WavHeader().text()},
                  {0, samples_of(kHalf)},
                  {900, samples_of(kHalf)},
                  {900, samples_of(kHalf)},
                  {0, ""}};
  });
  std::vector<double> off_ms(kBuffers_ms.size(), 1e9);
  // The machine may be busy: of up to 20 requests the best one shows what the program itself adds.
  for (int i = 0; i < 20 && std::ranges::max(off_ms) >= 1; ++i) {
    const std::vector<RequestRecord> records = answers_to(asking(server.url()), {.requests = 1});
    // What a player hears of what the server sent, by the server's own clock.
    std::vector<Piece> sent;
    for (size_t step = 1; step <= 3; ++step) sent.push_back({server.sent_us(i, step), kHalf});
    const RequestFigures figures = figures_of(records.at(0));
    for (size_t buffer = 0; buffer < kBuffers_ms.size(); ++buffer) {
      const PlayerFigures truth = play(sent, 24'000, kBuffers_ms[buffer], sent.back().at_us);
      const double off = std::abs(static_cast<double>(figures.players[buffer].dry_us - truth.dry_us)) / 1e3;
      const int64_t underruns = figures.players[buffer].underruns;
      EXPECT_LE(underruns, 2) << kBuffers_ms[buffer];
      // A first piece that came late leaves less silence, or none.
      if (off < 1) {
        EXPECT_EQ(underruns, 2) << kBuffers_ms[buffer];
      }
      off_ms[buffer] = std::min(off_ms[buffer], off);
    }
  }
  for (const double off : off_ms) EXPECT_LT(off, 1);
}

TEST(GeneratorRoutes, ALieAboutTheRateIsSeen) {
  // A second of speech at 24 kHz that calls itself 48 kHz.
  const FakeServer pcm(
      [](int) { return Script{{0, with_length("audio/pcm; rate=48000", samples_of(24'000))}}; });
  GeneratorOptions options = asking(pcm.url());
  options.question.container = Container::pcm;
  options.question.texts = {"Fifteen letters"};
  LevelTally tally({});
  for (const RequestRecord& record : answers_to(options, {.requests = 3}))
    tally.add(record, figures_of(record));
  EXPECT_THAT(tally.figures({}, {}).notes().at(0),
              HasSubstr("30.0 characters in a second of sound is no speed"));
  const FakeServer wav(
      [](int) { return Script{{0, with_length("audio/wav\r\nX-Sample-Rate: 16000", finished_wav(2'400))}}; });
  EXPECT_EQ(answers_to(asking(wav.url()), {.requests = 1}).at(0).failure->kind, "rate_contradiction");
}

TEST(GeneratorRoutes, OneDroppedAnswerInAHundredIsCounted) {
  const FakeServer server([](int number) {
    return number % 100 == 37 ? Script{{0, ""}} : Script{{0, with_length("audio/wav", finished_wav(240))}};
  });
  LevelTally tally({});
  for (const RequestRecord& record : answers_to(asking(server.url()), {.users = 4, .requests = 300}))
    tally.add(record, figures_of(record));
  const LevelFigures figures = tally.figures({}, {});
  EXPECT_EQ(figures.begun, 300);
  EXPECT_EQ(figures.completed, 297);
  EXPECT_EQ(figures.failures.at("no_answer").count, 3);
  EXPECT_EQ(server.requests().size(), 300u) << "none is repeated";
}

TEST(GeneratorRoutes, KeepsTheSound) {
  const FakeServer server([](int) { return Script{{0, with_length("audio/wav", finished_wav(300, 77))}}; });
  GeneratorOptions options = asking(server.url());
  EXPECT_EQ(answers_to(options, {.requests = 1}).at(0).samples, "");
  options.keep_audio = true;
  EXPECT_EQ(answers_to(options, {.requests = 1}).at(0).samples, samples_of(300, 77));
}

TEST(GeneratorRoutes, EndlessAnswersEnd) {
  const auto failure_of = [](const std::string& beginning, const std::string& again) {
    const FakeServer server([&](int) {
      Script script = {{0, beginning}};
      for (int i = 0; i < 64; ++i) script.push_back({0, again});
      script.push_back({20'000, "late"});
      return script;
    });
    GeneratorOptions options = asking(server.url());
    options.timeout_s = 5;
    const Failure failure = answers_to(options, {.requests = 1}).at(0).failure.value();
    return failure.kind + ": " + failure.detail;
  };
  const std::string much(128 << 10, 'x');
  EXPECT_THAT(failure_of(open_ended("text/html"), much),
              HasSubstr("not_sound: expected sound, got text/html"));
  EXPECT_THAT(failure_of("HTTP/1.1 500 No\r\n\r\n", much), HasSubstr("status_500: status 500: xxx"));
  EXPECT_THAT(failure_of("HTTP/1.1 200 OK\r\nX-Long: ", much), HasSubstr("bad_http: "));
  EXPECT_THAT(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", much),
              HasSubstr("bad_http: "));
  EXPECT_THAT(failure_of(open_ended("audio/wav") + finished_wav(240), much),
              HasSubstr("endless: more than 1 MiB"));
}

TEST(GeneratorRoutes, AServerThatSaysNothingIsNamed) {
  const FakeServer server([](int) { return Script{{60'000, "late"}}; });
  GeneratorOptions options = asking(server.url());
  options.timeout_s = 0.2;
  const Failure failure = answers_to(options, {.requests = 1}).at(0).failure.value();
  EXPECT_EQ(failure.kind, "timeout");
  EXPECT_EQ(failure.detail, "no answer after 0.2 s, 0 bytes");
}

TEST(GeneratorRoutes, AWebSocketThatIsRefusedSaysWhy) {
  const FakeServer server([](int) { return Script{}; });
  const std::vector<RequestRecord> records =
      answers_to(asking(server.url() + "/v1/audio/stream"), {.requests = 1});
  EXPECT_EQ(records.at(0).failure->kind, "bad_http");
}

}  // namespace
}  // namespace shoal::load
