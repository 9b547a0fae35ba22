// Answers of the batch route.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/base64.h"
#include "bench/load/exchange.h"
#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

const std::string kLinesHead = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";

std::string wav_file(int64_t frames, uint32_t rate_hz = 24'000) {
  WavHeader header{.rate_hz = rate_hz};
  header.data_bytes = static_cast<uint32_t>(2 * frames);
  return header.text() + samples_of(frames);
}
std::string item_line(int index, const std::string& sound, int rate_hz = 24'000) {
  return R"({"index":)" + std::to_string(index) + R"(,"success":true,"audio_base64":")" + to_base64(sound) +
         R"(","error":null,"sample_rate":)" + std::to_string(rate_hz) + "}\n";
}
const std::string kFailedItem =
    R"({"index":1,"success":false,"audio_base64":null,"error":"no such voice","code":"not_found"})"
    "\n";

// Each text arrives a millisecond after the one before it; then the server closes.
RequestRecord hear_batch(const std::vector<std::string>& pieces, int64_t items,
                         Container container = Container::wav) {
  RequestRecord record;
  Exchange exchange({.container = container, .items = items, .keep = true}, record);
  int64_t at_us = 0;
  bool done = exchange.take(kLinesHead, ++at_us);
  for (const std::string& piece : pieces)
    if (!done) done = exchange.take(piece, at_us += 1'000);
  if (!done) exchange.end(at_us + 1, Exchange::End::closed, "closed");
  return record;
}
std::string kind_of(const RequestRecord& record) { return record.failure ? record.failure->kind : ""; }

TEST(BatchExchange, HearsItemsOneAfterTheOther) {
  const RequestRecord record =
      hear_batch({item_line(1, wav_file(100)), item_line(0, wav_file(50)).substr(0, 40),
                  item_line(0, wav_file(50)).substr(40)},
                 2);
  EXPECT_EQ(kind_of(record), "");
  ASSERT_EQ(record.pieces.size(), 2u);
  EXPECT_EQ(record.pieces[0].frames, 100);
  EXPECT_EQ(record.pieces[1].frames, 50);
  EXPECT_EQ(record.pieces[1].at_us, 3'001) << "when its line was whole";
  EXPECT_EQ(record.samples, samples_of(150));
  EXPECT_EQ(record.format.rate_hz, 24'000);
}

TEST(BatchExchange, TakesTheRateOfPcmFromTheItem) {
  const RequestRecord record = hear_batch({item_line(0, samples_of(10), 16'000)}, 1, Container::pcm);
  EXPECT_EQ(kind_of(record), "");
  EXPECT_EQ(record.format.rate_hz, 16'000);
  EXPECT_EQ(kind_of(hear_batch({item_line(0, samples_of(9), 0)}, 1, Container::pcm)), "no_rate");
}

TEST(BatchExchange, AFailedItemFailsTheRequestAfterTheOthers) {
  const RequestRecord record = hear_batch({kFailedItem, item_line(0, wav_file(50))}, 2);
  EXPECT_EQ(kind_of(record), "error_not_found");
  EXPECT_THAT(record.failure->detail, HasSubstr("no such voice"));
  EXPECT_EQ(record.pieces.size(), 1u);
}

TEST(BatchExchange, NamesEachFailure) {
  EXPECT_EQ(kind_of(hear_batch({item_line(0, wav_file(50))}, 2)), "cut_off");
  EXPECT_EQ(kind_of(hear_batch({item_line(0, wav_file(50)), R"({"index")"}, 1)), "cut_off");
  EXPECT_EQ(kind_of(hear_batch({"<html>\n"}, 1)), "not_sound");
  EXPECT_EQ(kind_of(hear_batch({R"({"audio_base64":"?"})"
                                "\n"},
                               1)),
            "bad_sound");
  EXPECT_EQ(kind_of(hear_batch({item_line(0, wav_file(50)), item_line(1, wav_file(50, 16'000), 16'000)}, 2)),
            "rate_contradiction");
  EXPECT_EQ(kind_of(hear_batch({item_line(0, wav_file(50), 16'000)}, 1)), "rate_contradiction");
  RequestRecord record;
  Exchange exchange({.items = 1}, record);
  EXPECT_TRUE(exchange.take("HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: 2\r\n\r\nab", 1));
  EXPECT_EQ(kind_of(record), "not_sound");
}

}  // namespace
}  // namespace shoal::load
