#include "capi/speech.h"

#include <algorithm>

#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/engine.h"
#include "capi/mailbox.h"
#include "capi/request.h"
#include "capi/running_threads.h"
#include "capi/structs.h"

namespace shoal::capi {
namespace {

SpeechCallbacks callbacks_of(const shoal_callbacks& given) {
  SpeechCallbacks callbacks;
  if (given.on_audio)
    callbacks.on_audio = [given](std::span<const float> samples) {
      given.on_audio(given.user, samples.data(), samples.size());
    };
  if (given.on_end)
    callbacks.on_end = [given](const SpeechSummary& summary, const Error* ended) {
      shoal_error error = SHOAL_ERROR_INIT;
      if (ended) answer_error(&error, *ended);
      shoal_summary figures = summary_of(summary);
      given.on_end(given.user, &figures, ended ? &error : nullptr);
    };
  return callbacks;
}

// The speech, to be read. Throws Error(invalid_argument) if callbacks do that.
Speech& readable(shoal_speech* speech) {
  shoal_speech& handle = held(speech, "speech");
  if (handle.pushed)
    fail(ErrorCode::invalid_argument, "speech: its callbacks receive the sound, so it cannot be read");
  return handle.speech;
}

const Speech& any_speech(const shoal_speech* speech) { return held(speech, "speech").speech; }

server::Value words_json(const std::vector<SpokenWord>& words) {
  server::Value::Array array;
  for (const SpokenWord& word : words)
    array.push_back(
        {server::Value::Object{{"word", {word.word}}, {"start_s", {word.start_s}}, {"end_s", {word.end_s}}}});
  return {std::move(array)};
}

}  // namespace

shoal_summary summary_of(const SpeechSummary& from) {
  return {.size = sizeof(shoal_summary),
          .seed = from.seed,
          .samples = from.samples,
          .frames = from.frames,
          .utterances = from.utterances,
          .prompt_columns = from.prompt_columns,
          .cached_columns = from.cached_columns,
          .computed_columns = from.computed_columns,
          .preemptions = from.preemptions,
          .cut_at_frames = from.cut_at_frames,
          .underruns = from.underruns,
          .prepared_s = from.prepared_s,
          .admitted_s = from.admitted_s,
          .first_audio_s = from.first_audio_s,
          .total_s = from.total_s,
          .audio_s = from.audio_s(),
          .sample_rate_hz = from.sample_rate_hz,
          .reserved = 0};
}

std::chrono::milliseconds patience_of(int64_t timeout_ms) {
  constexpr std::chrono::milliseconds kWithoutLimit = std::chrono::hours(24 * 365);
  return timeout_ms < 0 ? kWithoutLimit : std::min(std::chrono::milliseconds(timeout_ms), kWithoutLimit);
}

}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_engine_submit(shoal_engine* engine, const shoal_request* request,
                               const shoal_callbacks* callbacks, shoal_speech** speech, shoal_error* error) {
  return call(error, [&] {
    shoal_speech*& out = output(speech, "speech");
    shoal::Engine& running = engine_of(engine);
    const shoal::SpeechRequest& wanted = held(request, "request").value;
    if (callbacks) {
      auto into = callbacks_of(read_struct(callbacks, "callbacks"));
      out = new shoal_speech(running.submit(wanted, std::move(into)), true);
    } else {
      out = new shoal_speech(running.submit(wanted), false);
    }
  });
}

void shoal_speech_free(shoal_speech* speech) {
  if (!in_child_of_running()) delete speech;
}

shoal_code shoal_speech_next(shoal_speech* speech, int64_t timeout_ms, shoal_buffer** samples,
                             shoal_error* error) {
  return call(error, [&]() -> shoal_code {
    shoal_buffer*& out = output(samples, "samples");
    auto piece = readable(speech).try_next(patience_of(timeout_ms));
    if (!piece) return SHOAL_NOT_YET;
    if (piece->empty()) return SHOAL_END;
    out = buffer_of(std::move(*piece));
    return SHOAL_OK;
  });
}

shoal_code shoal_speech_read_all(shoal_speech* speech, shoal_buffer** samples, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(samples, "samples");
    out = buffer_of(readable(speech).read_all());
  });
}

shoal_code shoal_speech_watch(shoal_speech* speech, shoal_mailbox* mailbox, uint64_t token,
                              shoal_error* error) {
  return call(error, [&] {
    shoal::Speech& watched = readable(speech);
    watched.on_ready(mailbox ? Mailbox::poster(held(mailbox, "mailbox").shared, token)
                             : std::function<void()>{});
  });
}

shoal_code shoal_speech_cancel(shoal_speech* speech, shoal_error* error) {
  return call(error, [&] { held(speech, "speech").speech.cancel(); });
}

shoal_code shoal_speech_status(const shoal_speech* speech, shoal_error* error) {
  return call(error, [&]() -> shoal_code {
    const shoal::Speech& asked = any_speech(speech);
    if (!asked.ended()) return SHOAL_NOT_YET;
    if (const auto ended = asked.error()) throw shoal::Error(*ended);
    return SHOAL_OK;
  });
}

shoal_code shoal_speech_sample_rate(const shoal_speech* speech, int32_t* hz, shoal_error* error) {
  return call(error, [&] { output(hz, "hz") = any_speech(speech).sample_rate_hz(); });
}

shoal_code shoal_speech_summary(const shoal_speech* speech, shoal_summary* summary, shoal_error* error) {
  return call(error, [&] { write_struct(summary, summary_of(any_speech(speech).summary()), "summary"); });
}

shoal_code shoal_speech_progress(const shoal_speech* speech, shoal_progress* progress, shoal_error* error) {
  return call(error, [&] {
    const shoal::SpeechProgress now = any_speech(speech).progress();
    write_struct(progress, shoal_progress{0, now.fraction, now.frames, now.audio_s}, "progress");
  });
}

shoal_code shoal_speech_warnings(const shoal_speech* speech, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(texts_value(any_speech(speech).summary().warnings));
  });
}

shoal_code shoal_speech_codes(const shoal_speech* speech, shoal_buffer** codes, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(codes, "codes");
    out = buffer_of(any_speech(speech).codes());
  });
}

shoal_code shoal_speech_words(const shoal_speech* speech, size_t first, shoal_buffer** json,
                              shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(words_json(any_speech(speech).words(first)));
  });
}
