#include "runtime/families/kokoro/chunk_joiner.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "text/phonemes/token.h"
#include "text/utf8.h"

namespace shoal::runtime {
namespace {

constexpr double kWindowS = 0.005, kFadeS = 0.005;
constexpr double kSilence = 0.00562341325;  // -45 dB
constexpr double kKeptLeadS = 0.05;

// Silence kept after a chunk at a join, at speed 1 (as in Kokoro-FastAPI 0.8).
double kept_tail_s(std::string_view phonemes) {
  size_t end = phonemes.size();
  while (end > 0) {
    const size_t begin = text::previous_character(phonemes, end);
    const std::string_view last = phonemes.substr(begin, end - begin);
    if (!phonemes::is_bracket_or_quote(last) && last != " ") {
      if (last == "!") return 0.319;
      switch (phonemes::mark_kind(last)) {
        case phonemes::MarkKind::sentence:
          return 0.36;
        case phonemes::MarkKind::colon:
        case phonemes::MarkKind::dash:
          return 0.278;
        case phonemes::MarkKind::none:
          return 0.05;
      }
    }
    end = begin;
  }
  return 0.05;
}

bool is_silent(std::span<const float> window) {
  double sum = 0;
  for (const float sample : window) sum += double{sample} * sample;
  return sum < kSilence * kSilence * static_cast<double>(window.size());
}

// A half cosine over the first `count` samples; from the back with reverse iterators.
template <typename Iterator>
void fade(Iterator first, int64_t count) {
  for (int64_t i = 0; i < count; ++i, ++first) {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    *first = static_cast<float>(*first * (0.5 - 0.5 * std::cos(std::numbers::pi * at)));
  }
}

}  // namespace

SilentEdges silent_edges(std::span<const float> samples, int sample_rate_hz) {
  const auto window = static_cast<size_t>(std::lround(kWindowS * sample_rate_hz));
  SilentEdges edges;
  for (std::span<const float> left = samples; left.size() >= window; left = left.subspan(window)) {
    if (!is_silent(left.first(window))) break;
    edges.lead += static_cast<int64_t>(window);
  }
  std::span<const float> left = samples.subspan(static_cast<size_t>(edges.lead));
  for (; left.size() >= window; left = left.first(left.size() - window)) {
    if (!is_silent(left.last(window))) break;
    edges.tail += static_cast<int64_t>(window);
  }
  return edges;
}

ChunkJoiner::ChunkJoiner(int sample_rate_hz, double speed, bool trim)
    : rate_hz_(sample_rate_hz), speed_(speed), trim_(trim) {}

int64_t ChunkJoiner::samples_of(double seconds) const { return std::llround(seconds * rate_hz_); }

void ChunkJoiner::append(JoinedPiece& piece, std::span<const float> samples) {
  piece.samples.insert(piece.samples.end(), samples.begin(), samples.end());
  done_ += std::ssize(samples);
}

void ChunkJoiner::give_held(JoinedPiece& piece, bool joined) {
  Held held = std::exchange(held_, {});
  joined = joined || held.pause_s > 0;
  if (joined) {
    held.samples.resize(static_cast<size_t>(std::min(samples_of(kFadeS), std::ssize(held.samples))));
    fade(held.samples.rbegin(), std::ssize(held.samples));
  }
  append(piece, held.samples);
  const double end_s = static_cast<double>(done_) / rate_hz_;
  for (SpokenWord& word : held.words) {
    word.start_s = std::min(word.start_s, end_s);
    word.end_s = std::min(word.end_s, end_s);
    piece.words.push_back(std::move(word));
  }
  append(piece, std::vector<float>(static_cast<size_t>(samples_of(held.pause_s))));
}

JoinedPiece ChunkJoiner::add(const Chunk& chunk) {
  JoinedPiece piece;
  give_held(piece, true);
  const int64_t count = std::ssize(chunk.samples), faded = samples_of(kFadeS);
  const SilentEdges edges = trim_ ? silent_edges(chunk.samples, rate_hz_) : SilentEdges{};
  const int64_t cut = began_ ? std::max<int64_t>(0, edges.lead - samples_of(kKeptLeadS)) : 0;
  const int64_t kept =
      trim_ ? std::min(edges.tail, samples_of(kept_tail_s(chunk.phonemes) / speed_)) : edges.tail;
  // Up to the fade of a join it is the same whether another chunk follows or not.
  const int64_t body = std::clamp<int64_t>(count - edges.tail + kept - faded, cut, count);
  const double start_s = static_cast<double>(done_ - cut) / rate_hz_;

  std::vector<float> samples(chunk.samples.begin() + cut, chunk.samples.begin() + body);
  if (began_) fade(samples.begin(), std::min(faded, std::ssize(samples)));
  const double floor_s = static_cast<double>(done_) / rate_hz_;
  append(piece, samples);
  const double body_end_s = static_cast<double>(done_) / rate_hz_;
  held_.samples.assign(chunk.samples.begin() + body, chunk.samples.end());
  held_.pause_s = chunk.pause_after_s;
  for (SpokenWord word : chunk.words) {
    word.start_s = std::max(word.start_s + start_s, floor_s);
    word.end_s = std::max(word.end_s + start_s, word.start_s);
    (word.end_s > body_end_s ? held_.words : piece.words).push_back(std::move(word));
  }
  began_ = true;
  return piece;
}

JoinedPiece ChunkJoiner::add_pause(double seconds) {
  JoinedPiece piece;
  give_held(piece, true);
  append(piece, std::vector<float>(static_cast<size_t>(samples_of(seconds))));
  began_ = true;
  return piece;
}

JoinedPiece ChunkJoiner::end() {
  JoinedPiece piece;
  give_held(piece, false);
  return piece;
}

}  // namespace shoal::runtime
