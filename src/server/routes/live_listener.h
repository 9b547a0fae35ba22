// What an utterance tells its client; each API has its own words for it.
#pragma once

#include <string>
#include <vector>

#include "server/routes/live_messages.h"
#include "server/routes/live_writer.h"
#include "shoal/speech.h"

namespace shoal::server {

// Each sends a message and throws as LiveWriter does.
class LiveListener {
 public:
  explicit LiveListener(LiveWriter& writer) : writer_(writer) {}
  virtual ~LiveListener() = default;

  // The text of the sound that follows, which begins `at_s` after the utterance does.
  virtual Task<> segment(int64_t index, const std::string& text, double at_s) = 0;
  // The words that end in this sound or ended before it, of models that know them; from the utterance's
  // start.
  virtual Task<> sound(std::string bytes, std::vector<SpokenWord> words) = 0;
  virtual Task<> failed(const HttpError& error) = 0;
  virtual Task<> done(const LiveDone& done) = 0;  // the last

  LiveWriter& writer() const { return writer_; }

 private:
  LiveWriter& writer_;
};

}  // namespace shoal::server
