// A conversation in the Wyoming protocol: one utterance after the other (docs/CLIENTS.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/routes/live_tasks.h"
#include "server/routes/live_utterance.h"
#include "server/routes/live_writer.h"
#include "server/wyoming/channel.h"
#include "server/wyoming/requests.h"
#include "server/wyoming/spoken_events.h"

namespace shoal::server {

class WyomingSession {
 public:
  // Both outlive it.
  WyomingSession(const WyomingHost& host, WyomingChannel& channel);

  // To the end of the conversation, and of everything that was started for it. Throws as the channel does.
  Task<> run();
  // The server shuts down: ends the conversation once nothing is spoken.
  void drain() { tasks_.hurry(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Speech {
    Request request;
    std::shared_ptr<void> place;
    std::unique_ptr<WyomingSpeaker> speaker;
    std::unique_ptr<LiveUtterance> utterance;
    bool streams = false;
    Clock::time_point begun = Clock::now();
  };

  Task<> converse();
  Task<> take(WyomingEvent event);
  Task<> start(WyomingRequest wanted, bool streams);
  Task<> prepare(Speech& speech, const WyomingRequest& wanted);
  Task<> speak();
  Task<> watch();
  Task<> report(const Error& error);
  Task<> leave(const Error* why);
  LiveUtterance& stream() const;
  bool is_open() const { return speech_ && !speech_->utterance->over(); }
  Request new_request() const;
  void record(const Speech& speech, int status, bool whole) const;

  const WyomingHost& host_;
  Services& services_;
  const std::shared_ptr<const void> models_held_ = services_.models.held();
  WyomingChannel& channel_;
  LiveWriter writer_;
  LiveTasks tasks_;
  std::unique_ptr<Speech> speech_;
  bool speaking_ = false;  // its coroutine runs
  bool taking_ = false;    // an event
  bool closed_ = false;
  Clock::time_point last_used_ = Clock::now();
};

}  // namespace shoal::server
