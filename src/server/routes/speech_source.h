// What an answer reads its sound from: one speech, or several in a row.
#pragma once

#include <vector>

#include "server/http/exchange.h"
#include "shoal/speech.h"

namespace shoal::server {

// Lives on the thread of a connection.
class SpeechSource {
 public:
  virtual ~SpeechSource() = default;
  // As Speech::next().
  virtual Task<std::vector<float>> next() = 0;
  // next() then throws Error(cancelled).
  virtual void cancel() = 0;
  virtual SpeechSummary summary() const = 0;
  // As Speech::words().
  virtual std::vector<SpokenWord> words(size_t first) const = 0;
};

// While it lives, the client's leaving cancels the source.
class CancelWhenGone {
 public:
  CancelWhenGone(Exchange& exchange, SpeechSource& source) : exchange_(exchange) {
    exchange_.on_gone([&source] { source.cancel(); });
  }
  ~CancelWhenGone() { exchange_.on_gone({}); }
  CancelWhenGone(const CancelWhenGone&) = delete;
  CancelWhenGone& operator=(const CancelWhenGone&) = delete;

 private:
  Exchange& exchange_;
};

}  // namespace shoal::server
