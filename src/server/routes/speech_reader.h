// Waiting for a Speech in a coroutine.
#pragma once

#include <memory>
#include <vector>

#include "server/http/exchange.h"
#include "server/routes/speech_source.h"
#include "shoal/speech.h"

namespace shoal::server {

// Waits for a Speech on the thread of a connection.
class SpeechReader final : public SpeechSource {
 public:
  SpeechReader(Speech speech, Executor executor);
  ~SpeechReader() override;  // cancels requests that have not ended
  SpeechReader(const SpeechReader&) = delete;
  SpeechReader& operator=(const SpeechReader&) = delete;

  Task<std::vector<float>> next() override;
  void cancel() override;
  SpeechSummary summary() const override;
  std::vector<SpokenWord> words(size_t first) const override;
  Speech& speech();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shoal::server
