// A speech as the answer to a request: what every speaking route shares.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audio/encoder.h"
#include "server/routes/services.h"

namespace shoal::server {

// Waits for a Speech on the thread of a connection.
class SpeechReader {
 public:
  SpeechReader(Speech speech, Executor executor);
  ~SpeechReader();  // cancels what has not ended
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

struct AnswerOptions {
  audio::Format format = audio::Format::wav;
  audio::EncoderOptions encoder;  // its sample rate is set here
  bool streaming = true;   // else one body with its length, the file's header with true sizes
  bool bare_wav = false;   // a streamed wav without its header (what /v1/tts streams: spec/serving.md 3.2)
  Headers headers;         // e.g. Content-Disposition
};

// Submits and answers: audio as it is made, or whole. Nothing is sent before the first samples are there, so that
// what fails until then is an error with a status. The client's leaving cancels the request. Headers of the answer:
// x-request-id is the router's; here x-shoal-seed, and, when not streaming, x-shoal-audio-seconds.
Task<> answer_with_speech(Services& services, Exchange& exchange, SpeechRequest request, AnswerOptions options);

// The same road for answers of another shape (server-sent events, NDJSON, JSON): `on_samples` is awaited for each
// piece, in order. The summary is complete at the end.
Task<SpeechSummary> read_speech(Services& services, Exchange& exchange, SpeechRequest request,
                                std::function<Task<>(std::vector<float> samples)> on_samples);

// Sound with its rate as bytes of a format, on a worker.
Task<std::string> encode_audio(Services& services, Executor executor, audio::Format format,
                               audio::EncoderOptions options, std::vector<float> samples);

// What the server adds to every request before it is submitted: client, deadline within max_timeout_s, limits of
// text, references and their seconds. Throws Error(invalid_argument, too_large) naming the field.
void check_and_complete(Services& services, const Request& request, SpeechRequest& speech);

}  // namespace shoal::server
