#include "server/wyoming/spoken_events.h"

#include <algorithm>
#include <utility>

#include "server/wyoming/event_reader.h"

namespace shoal::server {
namespace {

// Samples of 16 bits, one channel.
constexpr int64_t kSampleBytes = 2;
// Of one audio-chunk: a third of a second at 24 kHz, so that players of little memory take it.
constexpr size_t kMostChunkBytes = 16 << 10;

Value sound_format(int sample_rate_hz) {
  return {Value::Object{
      {"rate", {int64_t{sample_rate_hz}}}, {"width", {kSampleBytes}}, {"channels", {int64_t{1}}}}};
}

}  // namespace

std::string wyoming_error(const HttpError& error) {
  return wyoming_event(
      "error", {Value::Object{{"text", {error.message}}, {"code", {std::string(name_of(error.code))}}}});
}

Task<> WyomingSpeaker::begin() {
  if (std::exchange(begun_, true)) co_return;
  std::string start = wyoming_event("audio-start", sound_format(sample_rate_hz_));
  co_await writer().text(std::move(start));
}

Task<> WyomingSpeaker::segment(int64_t, const std::string&, double) { co_return; }

Task<> WyomingSpeaker::sound(std::string bytes, std::vector<SpokenWord>) {
  if (bytes.empty()) co_return;
  co_await begin();
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kMostChunkBytes);
    rest.remove_prefix(piece.size());
    std::string chunk = wyoming_event("audio-chunk", sound_format(sample_rate_hz_), piece);
    co_await writer().sound(std::move(chunk));
    bytes_sent_ += piece.size();
  }
}

Task<> WyomingSpeaker::failed(const HttpError& error) {
  failed_with_ = error.status;
  return writer().text(wyoming_error(error));
}

std::string WyomingSpeaker::last_events() const {
  std::string events = wyoming_event("audio-stop");
  if (streams_) events += wyoming_event("synthesize-stopped");
  return events;
}

// A text without words is spoken too: by no sound.
Task<> WyomingSpeaker::done(const LiveDone& done) {
  if (done.outcome != std::string_view("completed")) co_return;
  co_await begin();
  std::string last = last_events();
  co_await writer().text(std::move(last));
  whole_ = true;
}

}  // namespace shoal::server
