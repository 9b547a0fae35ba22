// The messages of ElevenLabs' WebSockets.
#pragma once

#include <string>

#include "server/routes/eleven_characters.h"
#include "server/routes/eleven_request.h"
#include "server/routes/live_listener.h"

namespace shoal::server {

struct ElevenMessage : ElevenRequest {
  std::optional<std::string> words;  // text; "" ends stream-input, and keeps a context alive
  std::string context_id;
  bool flush = false, close_context = false, close_socket = false;
};

// multi: of multi-stream-input, whose messages name contexts.
Schema<ElevenMessage> eleven_message_schema(bool multi);

// {"error", "message", "code"} and, if it concerns one, "contextId". Nothing else follows for a context.
std::string eleven_error(const HttpError& error, const std::string* context_id,
                         const std::string& request_id);

// Tells one utterance as a context: sound in base64 with the times of its characters, in milliseconds from
// the end of the characters told before, as the service documents them.
class ElevenListener final : public LiveListener {
 public:
  // context_id: null for stream-input. times: the model knows them.
  ElevenListener(LiveWriter& writer, const std::string* context_id, std::string request_id, bool times);

  Task<> segment(int64_t index, const std::string& text, double at_s) override;
  Task<> sound(std::string bytes, std::vector<SpokenWord> words) override;
  Task<> failed(const HttpError& error) override;
  Task<> done(const LiveDone& done) override;
  bool has_failed() const { return failed_; }

 private:
  // Values are built outside of coroutines, because of g++ 12.
  void begin(const std::string& text, double at_s);
  std::string json_of(const std::string& sound);
  std::string last_json(const LiveDone& done);
  std::string json_with(Value audio, Value final, const std::vector<std::string>& warnings);

  const std::optional<std::string> context_id_;
  const std::string request_id_;
  const bool times_;
  bool failed_ = false;
  CharacterTimes text_;
  TimedCharacters written_, spoken_;                                 // that were not told yet
  double written_from_s_ = 0, spoken_from_s_ = 0, spoken_to_s_ = 0;  // ends of what was told, and was spoken
};

}  // namespace shoal::server
