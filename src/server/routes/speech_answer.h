// A speech as the answer to a request: what every speaking route shares.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "audio/encoder.h"
#include "server/routes/services.h"
#include "server/routes/speech_reader.h"

namespace shoal::server {

struct AnswerOptions {
  audio::Format format = audio::Format::wav;
  audio::EncoderOptions encoder;  // its sample rate is set here
  int sample_rate_hz = 0;         // of the answer; 0: the model's
  bool streaming = true;          // else one body with its length, the file's header with true sizes
  bool bare_wav = false;  // a streamed wav without its header (what /v1/tts streams: spec/serving.md 3.2)
  Headers headers;        // e.g. Content-Disposition
};

// Submits and answers: audio as it is made, or whole. Nothing is sent before the first bytes of sound are
// there, so that what fails until then is an error with a status. The client's leaving cancels the request.
// Headers of the answer: x-request-id is the router's; here x-shoal-seed and x-shoal-sample-rate, and, when
// not streaming, x-shoal-audio-seconds and, after an utterance that ran out of frames, x-shoal-cut-at-frames.
Task<> answer_with_speech(Services& services, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options);

// The same as server-sent events of the OpenAI API: speech.audio.delta with base64 of the bytes that a stream
// of `options.format` would have, then speech.audio.done with usage (input: prompt columns, output: frames).
// What fails after the first event is an event of type "error".
Task<> answer_with_events(Services& services, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options);

// The same road for answers of another shape (NDJSON, JSON): `on_samples` is awaited for each piece, in
// order. The summary is complete at the end.
Task<SpeechSummary> read_speech(Services& services, Exchange& exchange, SpeechRequest request,
                                std::function<Task<>(std::vector<float> samples)> on_samples);

// Sound with its rate (options.sample_rate_hz) as the bytes of a file, on a worker.
Task<std::string> encode_audio(Services& services, Executor executor, audio::Format format,
                               audio::EncoderOptions options, std::vector<float> samples);

// What the server adds to every request before it is submitted: client, deadline within max_timeout_s, limits
// of text, references and their seconds. answer_with_speech and read_speech call it themselves. Decodes
// reference clips to measure them, so with any it belongs on a worker. Throws Error(invalid_argument,
// too_large) naming the field, and what decoding a clip throws.
void check_and_complete(Services& services, const Request& request, SpeechRequest& speech);

// Messages about a named voice name its files, which are nobody's business out there: throws another error
// instead of one that does, and logs it.
void hide_paths(const Services& services, const Error& error);

// check_and_complete, then Engine::submit; on a worker when there is more to prepare than a short text.
Task<Speech> submit_speech(Services& services, Exchange& exchange, SpeechRequest request);
// The same for what is no exchange; `from` outlives it.
Task<Speech> submit_speech(Services& services, const Request& from, Executor executor, SpeechRequest request);

}  // namespace shoal::server
