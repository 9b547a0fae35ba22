#include "bench/load/exchange.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

std::string head_of(const std::string& fields, int status = 200) {
  return "HTTP/1.1 " + std::to_string(status) + " Text\r\n" + fields + "\r\n";
}
std::string hex_chunk(const std::string& bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}
const std::string kChunked = "Content-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n";

// Bytes that arrive at a time in microseconds.
struct Arrival {
  int64_t at_us = 0;
  std::string bytes;
};

struct Heard {
  RequestRecord record;
  bool goes_on = false;
  std::string failure() const { return record.failure ? record.failure->kind : ""; }
};

Heard hear(const std::vector<Arrival>& arrivals, Hearing hearing = {}, int64_t closed_at_us = 9'000'000,
           Exchange::End end = Exchange::End::closed) {
  Heard heard;
  Exchange exchange(hearing, heard.record);
  bool done = false;
  for (size_t i = 0; i < arrivals.size() && !done; ++i)
    done = exchange.take(arrivals[i].bytes, arrivals[i].at_us);
  if (!done) exchange.end(closed_at_us, end, "closed");
  heard.goes_on = exchange.can_go_on();
  return heard;
}

TEST(Exchange, RecordsWhenSoundArrives) {
  const Heard heard = hear({{10, head_of(kChunked)},
                            {20, hex_chunk(WavHeader().text())},
                            {30, hex_chunk(samples_of(100, 0)) + hex_chunk(samples_of(20))},
                            {40, hex_chunk(samples_of(5))},
                            {50, "0\r\n\r\n"}});
  EXPECT_EQ(heard.failure(), "");
  EXPECT_EQ(heard.record.first_byte_us, 10);
  ASSERT_EQ(heard.record.pieces.size(), 2u);
  EXPECT_EQ(heard.record.pieces[0].at_us, 30);
  EXPECT_EQ(heard.record.pieces[0].frames, 120);
  EXPECT_EQ(heard.record.pieces[1].frames, 5);
  EXPECT_EQ(heard.record.first_audible_frame, 100);
  EXPECT_EQ(heard.record.end_us, 50);
  EXPECT_EQ(heard.record.status, 200);
  EXPECT_TRUE(heard.goes_on);
}

// Nobody has said how long it is.
TEST(Exchange, AnAnswerThatEndsWithItsConnectionIsWholeOnlyIfThatWasClosed) {
  const std::vector<Arrival> answer = {
      {10, head_of("Content-Type: audio/wav\r\n") + WavHeader().text() + samples_of(100)}};
  EXPECT_EQ(hear(answer).failure(), "");
  EXPECT_EQ(hear(answer, {}, 20, Exchange::End::broken).failure(), "cut_off");
}

TEST(Exchange, ReadsTheSameOfBytesOneByOne) {
  const std::string all = head_of(kChunked) + hex_chunk(WavHeader().text() + samples_of(33)) + "0\r\n\r\n";
  std::vector<Arrival> arrivals;
  for (size_t i = 0; i < all.size(); ++i) arrivals.push_back({static_cast<int64_t>(i), all.substr(i, 1)});
  const Heard heard = hear(arrivals);
  EXPECT_EQ(heard.failure(), "");
  EXPECT_EQ(heard.record.pieces.size(), 33u);
  EXPECT_EQ(heard.record.checksum, hear({{0, all}}).record.checksum);
}

TEST(Exchange, TakesTheRateOfPcmFromTheHead) {
  const Hearing pcm{.container = Container::pcm};
  const std::string sound = samples_of(10);
  const std::string length = "Content-Length: 20\r\n";
  EXPECT_EQ(hear({{1, head_of("Content-Type: audio/pcm; rate=16000\r\n" + length) + sound}}, pcm)
                .record.format.rate_hz,
            16'000);
  EXPECT_EQ(
      hear({{1, head_of("X-Shoal-Sample-Rate: 44100\r\n" + length) + sound}}, pcm).record.format.rate_hz,
      44'100);
  EXPECT_EQ(hear({{1, head_of("Content-Type: audio/pcm\r\n" + length) + sound}}, pcm).failure(), "no_rate");
  const Hearing told{.container = Container::pcm, .pcm_rate_hz = 24'000};
  EXPECT_EQ(hear({{1, head_of("Content-Type: audio/pcm\r\n" + length) + sound}}, told).record.format.rate_hz,
            24'000);
}

TEST(Exchange, NamesEachFailure) {
  const std::string wav = WavHeader().text() + samples_of(10);
  EXPECT_EQ(hear({}).failure(), "no_answer");
  EXPECT_EQ(hear({{1, "SSH-2.0-OpenSSH\r\n\r\n"}}).failure(), "bad_http");
  EXPECT_EQ(hear({{1, head_of(kChunked) + hex_chunk(wav)}}).failure(), "cut_off") << "no last chunk";
  EXPECT_EQ(hear({{1, head_of("Content-Length: 1000\r\n") + wav}}).failure(), "cut_off");
  EXPECT_EQ(hear({{1, "HTTP/1.1 200 O"}}).failure(), "cut_off");
  EXPECT_EQ(hear({{1, head_of("Content-Length: 5\r\n", 500) + "sorry"}}).failure(), "status_500");
  EXPECT_EQ(hear({{1, head_of("Content-Type: text/html\r\nContent-Length: 6\r\n") + "<html>"}}).failure(),
            "not_sound");
  EXPECT_EQ(hear({{1, head_of("Content-Length: 6\r\n") + "<html>"}}).failure(), "not_sound");
  EXPECT_EQ(hear({{1, head_of(kChunked) + "0\r\n\r\n"}}).failure(), "no_sound");
  const Heard lie = hear(
      {{1, head_of("X-Sample-Rate: 48000\r\nContent-Length: " + std::to_string(wav.size()) + "\r\n") + wav}});
  EXPECT_EQ(lie.failure(), "rate_contradiction");
  EXPECT_FALSE(
      hear({{1, head_of("Content-Length: 5\r\n", 500) + "sorry"}}).record.failure->detail.find("sorry") ==
      std::string::npos);
}

TEST(Exchange, AnAnswerMayEndWithItsConnection) {
  const Heard heard =
      hear({{1, head_of("Content-Type: audio/wav\r\n") + WavHeader().text() + samples_of(10)}});
  EXPECT_EQ(heard.failure(), "");
  EXPECT_EQ(heard.record.end_us, 9'000'000);
}

TEST(Exchange, LeavesAfterSoMuchSound) {
  const Hearing hearing{.leave_after_s = 0.1};
  const Heard heard = hear({{1, head_of(kChunked) + hex_chunk(WavHeader().text())},
                            {2, hex_chunk(samples_of(2'399))},
                            {3, hex_chunk(samples_of(1))},
                            {4, hex_chunk(samples_of(1))}},
                           hearing);
  EXPECT_EQ(heard.record.outcome, Outcome::left);
  EXPECT_EQ(heard.record.end_us, 3);
  EXPECT_FALSE(heard.goes_on);
}

TEST(Exchange, AnEndlessStreamEnds) {
  RequestRecord record;
  Exchange exchange({.container = Container::pcm}, record);
  EXPECT_FALSE(exchange.take(head_of("X-Sample-Rate: 1000\r\n"), 1));
  const std::string second = samples_of(1'000'000);
  bool done = false;
  for (int i = 0; i < 4 && !done; ++i) done = exchange.take(second, 2 + i);
  EXPECT_TRUE(done);
  EXPECT_EQ(record.failure->kind, "endless");
}

}  // namespace
}  // namespace shoal::load
