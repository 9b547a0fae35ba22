// Waiting for a Speech in a coroutine.
#pragma once

#include <memory>
#include <vector>

#include "server/http/exchange.h"
#include "shoal/speech.h"

namespace shoal::server {

// Waits for a Speech on the thread of a connection.
class SpeechReader {
 public:
  SpeechReader(Speech speech, Executor executor);
  ~SpeechReader();  // cancels requests that have not ended
  SpeechReader(const SpeechReader&) = delete;
  SpeechReader& operator=(const SpeechReader&) = delete;

  // As Speech::next().
  Task<std::vector<float>> next();
  // From the connection's thread: next() then throws Error(cancelled).
  void cancel();
  Speech& speech();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// While it lives, the client's leaving cancels the reader.
class CancelWhenGone {
 public:
  CancelWhenGone(Exchange& exchange, SpeechReader& reader) : exchange_(exchange) {
    exchange_.on_gone([&reader] { reader.cancel(); });
  }
  ~CancelWhenGone() { exchange_.on_gone({}); }
  CancelWhenGone(const CancelWhenGone&) = delete;
  CancelWhenGone& operator=(const CancelWhenGone&) = delete;

 private:
  Exchange& exchange_;
};

}  // namespace shoal::server
