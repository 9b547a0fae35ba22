// A live conversation: utterances one after the other on one WebSocket (docs/LIVE.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/routes/live_listener.h"
#include "server/routes/live_messages.h"
#include "server/routes/live_tasks.h"
#include "server/routes/live_utterance.h"
#include "server/routes/live_writer.h"
#include "server/routes/services.h"

namespace shoal::server {

// What the client's JSON comes in.
enum class LiveFrames { text, text_or_binary };

class LiveSession {
 public:
  // All outlive it.
  LiveSession(Services& services, WebSocket& socket, const LiveReader& reader,
              LiveFrames frames = LiveFrames::text);

  // To the end of the connection, and of everything that was started for it. Throws as the socket does.
  Task<> run();

 private:
  using Clock = std::chrono::steady_clock;

  Task<> converse();
  Task<> take(WebSocket::Message message);
  Task<> obey(LiveMessage message);
  Task<> start(LiveStart start);
  Task<> speak();
  Task<> report(const HttpError& told);
  LiveUtterance& current() const;
  // Ends the connection when it is idle for too long or the server shuts down.
  Task<> watch();
  Task<> say_goodbye(uint16_t code, Error why);
  bool is_busy() const;

  Services& services_;
  WebSocket& socket_;
  const LiveReader& reader_;
  const LiveFrames frames_;
  LiveWriter writer_;
  LiveTasks tasks_;
  std::unique_ptr<LiveListener> listener_;  // of utterance_
  std::unique_ptr<LiveUtterance> utterance_;
  bool speaking_ = false;  // utterance_'s coroutine runs
  Clock::time_point last_used_ = Clock::now();
};

}  // namespace shoal::server
