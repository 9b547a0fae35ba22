// A speech as the answer to a request: what every speaking route shares.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "audio/encoder.h"
#include "server/routes/services.h"
#include "server/routes/speech_reader.h"
#include "text/ssml/ssml.h"

namespace shoal::server {

struct AnswerOptions {
  audio::Format format = audio::Format::wav;
  audio::EncoderOptions encoder;  // its sample rate is set here
  int sample_rate_hz = 0;         // of the answer; 0: the model's
  bool streaming = true;          // else one body with its length, the file's header with true sizes
  bool bare_wav = false;          // a streamed wav without its header (what /v1/tts streams)
  std::string content_type;       // empty: the format's (audio::mime_type)
  Headers headers;                // e.g. Content-Disposition
  std::vector<ssml::Part> parts;  // of SSML, spoken instead of the request's text; empty: that is plain
};

// Submits and answers: audio as it is made, or a whole file. Nothing is sent before the first bytes of sound,
// so that earlier failures are errors with a status. If the client leaves, the request is cancelled. Headers
// of the answer: x-request-id comes from the router; here x-shoal-seed and x-shoal-sample-rate,
// x-shoal-warnings if there are any by then, and, when not streaming, x-shoal-audio-seconds and, after an
// utterance that ran out of frames, x-shoal-cut-at-frames.
Task<> answer_with_speech(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options);

// The same as server-sent events of the OpenAI API: speech.audio.delta with base64 of the bytes that a stream
// of `options.format` would have, then speech.audio.done with usage (input: prompt columns, output: frames).
// What fails after the first event is an event of type "error".
Task<> answer_with_events(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options);

// The same with the times of words, for models that know them: JSON objects {audio: base64, audio_format,
// timestamps:
// [{word, start_time, end_time}]} with seconds from the first sample; one line per piece or, when not
// streaming, one object for all. `timestamps`: false leaves them null. Warnings are in the last object.
Task<> answer_with_captions(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                            AnswerOptions options, bool timestamps);

// How long a request may take that names no timeout: as long as the engine allows, at most max_timeout_s.
std::chrono::seconds usual_timeout(const Services& services, const Engine& engine);

// Applies the server's rules to a request before it is submitted: client, strictness, deadline within
// max_timeout_s, limits of text, references and their seconds. submit_speech calls it itself. Decodes
// reference clips to measure them, so with clips it must run on a worker. Throws Error(invalid_argument,
// too_large) naming the field, and the Errors of decoding a clip.
void check_and_complete(Services& services, Engine& engine, const Request& request, SpeechRequest& speech);
// The characters that a request is about to have spoken, which count against its key's limits (Usage).
int64_t charged_characters(const SpeechRequest& speech);

// Messages about a named voice or the phonemizer contain file names, which clients must not see: replaces
// such an error by another one, and logs the original with the request.
void hide_paths(const Engine& engine, const Request& request, const Error& error);

// Says of a voice that is not there which one is nearest: throws another error instead of one about that.
// Looks into the folder of voices, so it belongs on a worker.
void tell_unknown_voice(const Services& services, Engine& engine, const Error& error);

// What `options` say to speak, submitted: the request's text, or its parts in their order.
Task<std::unique_ptr<SpeechSource>> submit_source(Services& services, Engine& engine, Exchange& exchange,
                                                  SpeechRequest request, const AnswerOptions& options);
// check_and_complete, then Engine::submit; on a worker when there is more to prepare than a short text.
Task<Speech> submit_speech(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request);
// The same without an exchange; `from` must outlive it.
Task<Speech> submit_speech(Services& services, Engine& engine, const Request& from, Executor executor,
                           SpeechRequest request);

}  // namespace shoal::server
