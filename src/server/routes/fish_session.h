// A connection of Fish Audio's WebSocket /v1/tts/live: one utterance, whose text comes in pieces.
#pragma once

#include <chrono>
#include <memory>

#include "server/routes/fish_live.h"
#include "server/routes/live_tasks.h"
#include "server/routes/live_utterance.h"
#include "server/routes/services.h"

namespace shoal::server {

class FishSession {
 public:
  // All outlive it.
  FishSession(Services& services, WebSocket& socket, const FishReader& reader);

  // To the end of the connection, and of everything that was started for it. Throws as the socket does.
  Task<> run();

 private:
  using Clock = std::chrono::steady_clock;

  Task<> converse();
  Task<> take(WebSocket::Message message);
  Task<> obey(FishMessage message);
  Task<> start(FishRequest request);
  Task<> speak();
  LiveUtterance& current() const;
  // Ends the utterance, or the connection without one, with an error.
  Task<> refuse(HttpError told);
  Task<> watch();

  Services& services_;
  WebSocket& socket_;
  const FishReader& reader_;
  LiveWriter writer_;
  LiveTasks tasks_;
  std::unique_ptr<FishListener> listener_;  // of utterance_
  std::unique_ptr<LiveUtterance> utterance_;
  bool leaving_ = false;
  Clock::time_point last_used_ = Clock::now();
};

}  // namespace shoal::server
