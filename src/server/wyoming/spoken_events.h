// An utterance as events: audio-start, audio-chunk, audio-stop.
#pragma once

#include <string>
#include <vector>

#include "server/routes/live_listener.h"

namespace shoal::server {

class WyomingSpeaker final : public LiveListener {
 public:
  // streams: of synthesize-start, so that synthesize-stopped follows.
  WyomingSpeaker(LiveWriter& writer, int sample_rate_hz, bool streams)
      : LiveListener(writer), sample_rate_hz_(sample_rate_hz), streams_(streams) {}

  Task<> segment(int64_t index, const std::string& text, double at_s) override;
  Task<> sound(std::string bytes, std::vector<SpokenWord> words) override;
  Task<> failed(const HttpError& error) override;
  Task<> done(const LiveDone& done) override;

  int failed_with() const { return failed_with_; }  // a status; 0: it did not fail
  bool whole() const { return whole_; }             // told to its end
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  Task<> begin();
  std::string last_events() const;

  const int sample_rate_hz_;
  const bool streams_;
  bool begun_ = false, whole_ = false;
  int failed_with_ = 0;
  uint64_t bytes_sent_ = 0;
};

// The event `error`: the words, and the name of the code.
std::string wyoming_error(const HttpError& error);

}  // namespace shoal::server
