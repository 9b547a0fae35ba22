// The messages of a live conversation (docs/LIVE.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/error_style.h"
#include "server/body/schema.h"
#include "shoal/speech_request.h"

namespace shoal::server {

// How an utterance is to be spoken. Absent values are the model's.
struct LiveStart {
  std::string id, model, voice, format = "pcm";
  std::optional<int> sample_rate;
  std::vector<ReferenceClip> references;
  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<int> top_k;
  std::optional<bool> normalize;
  int64_t max_new_tokens = 1024;
  int chunk_length = 200;
  std::optional<double> timeout;
  double speed = 1;
  float volume = 1;
  std::string language;
  // Of other APIs; no fields of the message.
  int bitrate_bps = 0;
  std::vector<std::string> unused;
};

struct LiveMessage {
  enum class Verb { start, text, flush, end, cancel, ping };
  Verb verb = Verb::ping;
  LiveStart start;   // of start
  std::string text;  // of text
};

// Reads what clients send. Immutable.
class LiveReader {
 public:
  explicit LiveReader(int max_references);

  // Throws BodyError: not JSON; no `type`, or one that is unknown; fields that do not fit.
  LiveMessage read(std::string_view json) const;

 private:
  Schema<LiveStart> start_;
};

// The server's messages, as JSON.
struct LiveStarted {
  std::string id, format, content_type;
  int sample_rate_hz = 0;
  uint64_t seed = 0;
};
std::string live_started(const LiveStarted& started);
std::string live_segment(const std::string& id, int64_t index, const std::string& text, double at_s);
struct LiveDone {
  std::string id;
  std::string outcome;  // "completed", "cancelled", "failed"
  double seconds = 0;
  int64_t segments = 0;
  uint64_t seed = 0;
  int64_t cut_at_frames = 0;
  std::vector<std::string> warnings;  // each once
};
std::string live_done(const LiveDone& done);
// `id`: of the utterance that it ended; empty if it ended none.
std::string live_error(const std::string& id, const HttpError& error, const std::string& request_id);
std::string live_pong();

}  // namespace shoal::server
