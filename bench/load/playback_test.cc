#include "bench/load/playback.h"

#include <gtest/gtest.h>
#include <vector>

#include "bench/load/request_figures.h"

namespace shoal::load {
namespace {

constexpr int kRate = 1'000;  // a frame is a millisecond

// {at_ms, length_ms} each.
std::vector<Piece> pieces_of(const std::vector<std::pair<int64_t, int64_t>>& list) {
  std::vector<Piece> pieces;
  for (const auto& [at_ms, length_ms] : list) pieces.push_back({at_ms * 1'000, length_ms});
  return pieces;
}

void expect_played(const std::vector<Piece>& pieces, int64_t buffer_ms, int64_t underruns, int64_t dry_ms) {
  const PlayerFigures figures = play(pieces, kRate, buffer_ms, pieces.back().at_us);
  EXPECT_EQ(figures.underruns, underruns) << buffer_ms;
  EXPECT_EQ(figures.dry_us, dry_ms * 1'000) << buffer_ms;
}

TEST(Play, SoundInTimeNeverRunsDry) {
  const auto pieces = pieces_of({{500, 100}, {600, 100}, {700, 100}});  // each at the last moment
  for (const int64_t buffer : {0, 50, 100, 200}) expect_played(pieces, buffer, 0, 0);
}

TEST(Play, ABufferCoversAStallOfItsLength) {
  // 300 ms of sound, and a stall that ends 430 ms after its beginning: 130 ms late.
  const auto pieces = pieces_of({{0, 100}, {100, 100}, {200, 100}, {430, 100}, {530, 100}});
  expect_played(pieces, 0, 1, 130);
  expect_played(pieces, 100, 1, 130);       // starts with the first piece, which is as long
  expect_played(pieces, 200, 1, 30 + 100);  // starts at 100, dry at 400, holds 200 again at 530
  expect_played(pieces, 300, 0, 0);         // starts at 200, dry at 500 at the earliest, and 430 is before
}

TEST(Play, EveryStallCounts) {
  const auto pieces = pieces_of({{0, 60}, {100, 60}, {200, 60}, {300, 60}});
  expect_played(pieces, 50, 3, 3 * 40);
  expect_played(pieces, 100, 1, 300 - 280);  // plays from 100, dry at 280, and the answer ends at 300
  expect_played(pieces, 200, 0, 0);
}

TEST(Play, AShortAnswerBeginsAtItsEnd) {
  const auto pieces = pieces_of({{0, 20}, {300, 20}});
  expect_played(pieces, 200, 0, 0);
  const PlayerFigures late = play(pieces_of({{0, 100}, {300, 20}}), kRate, 100, 350'000);
  EXPECT_EQ(late.underruns, 1);
  EXPECT_EQ(late.dry_us, 250'000);  // 20 ms are less than the buffer: it waits for the end
}

TEST(Play, RoundingDoesNotAddUp) {
  std::vector<Piece> pieces;  // 44,100 Hz in pieces of one frame, each when it is due to the microsecond
  for (int64_t i = 0; i < 44'100; ++i) pieces.push_back({i * 1'000'000 / 44'100, 1});
  EXPECT_EQ(play(pieces, 44'100, 0, pieces.back().at_us).underruns, 0);
}

TEST(HeardAt, WaitsForLeadingSilence) {
  // 300 ms of silence and then sound, all of it sent 40 ms after the request.
  EXPECT_EQ(heard_at_us(pieces_of({{40, 500}}), kRate, 300), 340'000);
  EXPECT_EQ(heard_at_us(pieces_of({{40, 100}, {60, 400}}), kRate, 300), 340'000);
  EXPECT_EQ(heard_at_us(pieces_of({{40, 100}, {900, 400}}), kRate, 100), 900'000);
  EXPECT_EQ(heard_at_us(pieces_of({{40, 100}, {900, 400}}), kRate, 99), 139'000);
}

TEST(RequestFigures, CountFromWhenTheRequestWasDue) {
  RequestRecord record;
  record.due_us = 1'000'000;
  record.begun_us = 1'003'000;
  record.first_byte_us = 1'020'000;
  record.pieces = {{1'050'000, 400}, {1'700'000, 600}};
  record.end_us = 1'800'000;
  record.first_audible_frame = 250;
  record.format.rate_hz = kRate;
  const RequestFigures figures = figures_of(record);
  EXPECT_EQ(figures.send_lag_ms, 3);
  EXPECT_EQ(figures.first_byte_ms, 20);
  EXPECT_EQ(figures.first_sound_ms, 50);
  EXPECT_EQ(figures.first_audible_ms, 300);
  EXPECT_EQ(figures.leading_silence_ms, 250);
  EXPECT_EQ(figures.latency_ms, 800);
  EXPECT_EQ(figures.sound_s, 1);
  EXPECT_EQ(figures.real_time_factor, 0.8);
  EXPECT_EQ(figures.longest_gap_ms, 650);
  for (const PlayerFigures& player : figures.players) EXPECT_EQ(player.underruns, 1);
}

}  // namespace
}  // namespace shoal::load
