// The messages of Fish Audio's WebSocket /v1/tts/live, in MessagePack. (Facts: its AsyncAPI document of
// 2026.)
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/routes/fish_request.h"
#include "server/routes/live_listener.h"

namespace shoal::server {

struct FishMessage {
  enum class Verb { start, text, flush, stop };
  Verb verb = Verb::flush;
  FishRequest request;  // of start
  std::string text;     // of text
};

// Reads what clients send. Immutable.
class FishReader {
 public:
  explicit FishReader(const ServerConfig& config) : request_(fish_request_schema(config)) {}

  // Throws BodyError: not MessagePack; no `event`, or one that is unknown; fields that do not fit.
  FishMessage read(std::string_view packed) const;

 private:
  const Schema<FishRequest> request_;
};

// {"event": "finish"}: of `reason` "stop", or, with `error`, "error" and what was wrong.
std::string fish_finish(const LiveDone& done);
std::string fish_finish(const HttpError& error, const std::string& request_id);
// What closes a connection after an error: 1008, the client's fault; 1013, it may try again; 1011, ours.
uint16_t close_code_of(const HttpError& error);

// Tells an utterance: sound, and one finish at the end.
class FishListener final : public LiveListener {
 public:
  // pause: at least that long between two messages.
  FishListener(LiveWriter& writer, std::string request_id, std::chrono::milliseconds pause);

  Task<> segment(int64_t index, const std::string& text, double at_s) override;
  Task<> sound(std::string bytes, std::vector<SpokenWord> words) override;
  Task<> failed(const HttpError& error) override;
  Task<> done(const LiveDone& done) override;

  // The utterance ends with this error, unless it has one; it is cancelled next.
  void fail_with(const HttpError& error);
  const std::optional<HttpError>& error() const { return error_; }

 private:
  using Clock = std::chrono::steady_clock;

  Task<> send(std::string packed);

  const std::string request_id_;
  const std::chrono::milliseconds pause_;
  Signal rest_;
  Clock::time_point sent_;
  std::optional<HttpError> error_;
};

}  // namespace shoal::server
