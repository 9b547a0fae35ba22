// A connection of ElevenLabs' WebSockets: stream-input, which speaks one utterance, and multi-stream-input,
// which speaks several at once, called contexts.
#pragma once

#include <chrono>
#include <list>
#include <memory>

#include "server/routes/eleven_messages.h"
#include "server/routes/live_tasks.h"
#include "server/routes/live_utterance.h"

namespace shoal::server {

class ElevenSession {
 public:
  // All outlive it.
  ElevenSession(Services& services, WebSocket& socket, const Schema<ElevenRequest>& query,
                const Schema<ElevenMessage>& messages, bool multi);

  // To the end of the connection, and of everything that was started for it. Throws as the socket does.
  Task<> run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Context {
    std::string id;
    std::unique_ptr<ElevenListener> listener;
    std::unique_ptr<LiveUtterance> utterance;
    Clock::time_point last_used = Clock::now();
    bool unflushed = false;  // text has come since the last flush
    bool closed = false;     // takes no more
  };
  using Contexts = std::list<Context>;

  Task<> begin();
  Task<> converse();
  Task<> take(const std::string& json);
  Task<> obey(ElevenMessage message);
  Task<Context*> open(const ElevenMessage& message);
  Context& add(const std::string& id, LiveSettings settings);
  Context* find(const std::string& id);
  static void close(Context& context);
  Task<> speak(Contexts::iterator context);
  HttpError told_of(const Error& error) const;
  Task<> tell(const HttpError& told, const std::string* context_id);
  Task<> watch();
  void rest(Context& context) const;
  Task<> refuse(HttpError told);

  Services& services_;
  WebSocket& socket_;
  const Schema<ElevenRequest>& query_;
  const Schema<ElevenMessage>& messages_;
  const bool multi_;
  LiveWriter writer_;
  LiveTasks tasks_;
  ElevenRequest asked_;
  ElevenSpeaker speaker_;
  Contexts contexts_;
  bool leaving_ = false;
  Clock::time_point last_used_ = Clock::now();
};

}  // namespace shoal::server
