#include "server/routes/speech_answer.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "server/routes/sound_encoder.h"

namespace shoal::server {
namespace {

using Clock = std::chrono::steady_clock;

// What submitting may do on a connection's thread: splitting and tokenising so much text takes under a
// millisecond.
constexpr size_t kQuickTextBytes = 2048;
// A body that is sent whole lies in memory: 50 minutes of 44.1 kHz PCM.
constexpr size_t kMostWholeBytes = size_t{256} << 20;

class Speaking {
 public:
  explicit Speaking(ServerMetrics& metrics) : metrics_(metrics) { metrics_.speaking(1); }
  ~Speaking() { metrics_.speaking(-1); }
  Speaking(const Speaking&) = delete;
  Speaking& operator=(const Speaking&) = delete;

  // Called when sound has been sent; counts the first time.
  void heard() {
    if (std::exchange(heard_, true)) return;
    metrics_.live_first_audio(std::chrono::duration<double>(Clock::now() - start_).count());
  }

 private:
  ServerMetrics& metrics_;
  const Clock::time_point start_ = Clock::now();
  bool heard_ = false;
};

// An answer in the making: a speech being read, and what becomes of its samples.
class Answer {
 public:
  Answer(Services& services, Exchange& exchange, Speech speech)
      : services_(services),
        exchange_(exchange),
        reader_(std::move(speech), exchange.executor()),
        cancel_(exchange, reader_) {}

  Task<std::vector<float>> next() {
    try {
      std::vector<float> samples = co_await reader_.next();
      if (samples.empty() && reader_.speech().summary().samples == 0)
        fail(ErrorCode::invalid_argument,
             "text: no speech came of it; it or max_new_tokens may be too short");
      co_return samples;
    } catch (const Error& error) {
      hide_paths(services_, error);
      throw;
    }
  }

  void set_encoder(const AnswerOptions& options, bool is_file) {
    audio::EncoderOptions encoder = options.encoder;
    encoder.sample_rate_hz = options.sample_rate_hz > 0 ? options.sample_rate_hz : summary().sample_rate_hz;
    encoder.rewritable_header = is_file;
    sample_rate_hz_ = encoder.sample_rate_hz;
    const bool bare = options.bare_wav && !is_file && options.format == audio::Format::wav;
    encoder_ = std::make_shared<SoundEncoder>(bare ? audio::Format::pcm_s16le : options.format, encoder,
                                              summary().sample_rate_hz);
  }

  // The next bytes, perhaps none although there is more to come; absent: it has ended.
  Task<std::optional<std::string>> next_bytes() {
    if (ended_) co_return std::nullopt;
    const std::vector<float> samples = co_await next();
    ended_ = samples.empty();
    if (ended_) co_return encoder_->finish();
    if (!encoder_->is_long(samples.size())) co_return encoder_->encode(samples);
    auto work = [encoder = encoder_, &samples] { return encoder->encode(samples); };
    std::string bytes = co_await services_.workers.run(exchange_.executor(), std::move(work));
    co_return bytes;
  }

  Response head(std::string content_type, Headers headers) {
    headers.add("x-shoal-seed", std::to_string(summary().seed));
    headers.add("x-shoal-sample-rate", std::to_string(sample_rate_hz_));
    return {.content_type = std::move(content_type), .body = {}, .headers = std::move(headers)};
  }

  SpeechSummary summary() { return reader_.speech().summary(); }
  const SoundEncoder& encoder() const { return *encoder_; }

 private:
  Services& services_;
  Exchange& exchange_;
  SpeechReader reader_;
  CancelWhenGone cancel_;
  std::shared_ptr<SoundEncoder> encoder_;
  int sample_rate_hz_ = 0;
  bool ended_ = false;
};

std::string mime_of(audio::Format format) { return std::string(audio::mime_type(format)); }

Task<> send_stream(Exchange& exchange, Answer& answer, Speaking& speaking, const AnswerOptions& options) {
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    if (bytes->empty()) continue;
    if (exchange.begun()) {
      co_await exchange.write(*bytes);
      continue;
    }
    Response head = answer.head(mime_of(options.format), options.headers);
    head.body = std::move(*bytes);
    co_await exchange.begin(std::move(head));
    speaking.heard();
  }
  co_await exchange.end();
}

Task<> send_whole(Exchange& exchange, Answer& answer, Speaking& speaking, const AnswerOptions& options) {
  std::string body;
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    body += *bytes;
    if (body.size() > kMostWholeBytes)
      fail(ErrorCode::too_large, "the answer has more than ", kMostWholeBytes,
           " bytes; ask for it as a stream");
  }
  answer.encoder().complete_header(body);
  Response response = answer.head(mime_of(options.format), options.headers);
  const SpeechSummary summary = answer.summary();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", summary.audio_s());
  response.headers.add("x-shoal-audio-seconds", seconds);
  if (summary.cut_at_frames > 0)
    response.headers.add("x-shoal-cut-at-frames", std::to_string(summary.cut_at_frames));
  response.body = std::move(body);
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

std::string event(const Value& value) { return "data: " + write_json(value) + "\n\n"; }

std::string delta_event(std::string_view bytes) {
  return event({Value::Object{{"type", {std::string("speech.audio.delta")}}, {"audio", {to_base64(bytes)}}}});
}

std::string done_event(const SpeechSummary& summary) {
  Value::Object usage{{"input_tokens", {summary.prompt_columns}},
                      {"output_tokens", {summary.frames}},
                      {"total_tokens", {summary.prompt_columns + summary.frames}}};
  return event({Value::Object{{"type", {std::string("speech.audio.done")}}, {"usage", {std::move(usage)}}}});
}

std::string error_event(const Error& error, const std::string& request_id) {
  return event({Value::Object{{"type", {std::string("error")}},
                              {"error", openai_error(http_error(error), request_id)}}});
}

Task<> send_events(Exchange& exchange, Answer& answer, Speaking& speaking, const AnswerOptions& options) {
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    if (bytes->empty()) continue;
    const std::string told = delta_event(*bytes);
    if (exchange.begun()) {
      co_await exchange.write(told);
      continue;
    }
    Response head = answer.head("text/event-stream", options.headers);
    head.headers.add("Cache-Control", "no-cache");
    head.headers.add("X-Accel-Buffering", "no");  // a balancer that gathers bytes would hold events back
    head.body = told;
    co_await exchange.begin(std::move(head));
    speaking.heard();
  }
  co_await exchange.write(done_event(answer.summary()));
  co_await exchange.end();
}

}  // namespace

Task<Speech> submit_speech(Services& services, Exchange& exchange, SpeechRequest request) {
  return submit_speech(services, exchange.request(), exchange.executor(), std::move(request));
}

Task<Speech> submit_speech(Services& services, const Request& from, Executor executor,
                           SpeechRequest request) {
  const auto submit = [&] {
    check_and_complete(services, from, request);
    return services.engine.submit(std::move(request));
  };
  const bool quick =
      request.text.size() <= kQuickTextBytes && request.voice.empty() && request.references.empty();
  try {
    if (quick) co_return submit();
    Speech speech = co_await services.workers.run(executor, submit);
    co_return speech;
  } catch (const Error& error) {
    hide_paths(services, error);
    throw;
  }
}

Task<> answer_with_speech(Services& services, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options) {
  Speaking speaking(services.metrics);
  request.delivery = options.streaming ? Delivery::streaming : Delivery::whole;
  Speech speech = co_await submit_speech(services, exchange, std::move(request));
  Answer answer(services, exchange, std::move(speech));
  answer.set_encoder(options, !options.streaming);
  if (options.streaming)
    co_await send_stream(exchange, answer, speaking, options);
  else
    co_await send_whole(exchange, answer, speaking, options);
}

Task<> answer_with_events(Services& services, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options) {
  Speaking speaking(services.metrics);
  Speech speech = co_await submit_speech(services, exchange, std::move(request));
  Answer answer(services, exchange, std::move(speech));
  answer.set_encoder(options, false);
  std::string last_words;
  try {
    co_await send_events(exchange, answer, speaking, options);
  } catch (const Error& error) {
    if (!exchange.begun() || error.code() == ErrorCode::cancelled) throw;
    if (http_error(error).status == 500) log(LogLevel::error, exchange.request().id, ": ", error.message());
    last_words = error_event(error, exchange.request().id);
  }
  if (last_words.empty()) co_return;
  co_await exchange.write(last_words);
  co_await exchange.end();
}

Task<SpeechSummary> read_speech(Services& services, Exchange& exchange, SpeechRequest request,
                                std::function<Task<>(std::vector<float> samples)> on_samples) {
  Speaking speaking(services.metrics);
  Speech speech = co_await submit_speech(services, exchange, std::move(request));
  Answer answer(services, exchange, std::move(speech));
  while (true) {
    std::vector<float> samples = co_await answer.next();
    if (samples.empty()) co_return answer.summary();
    co_await on_samples(std::move(samples));
    speaking.heard();
  }
}

Task<std::string> encode_audio(Services& services, Executor executor, audio::Format format,
                               audio::EncoderOptions options, std::vector<float> samples) {
  auto work = [format, options, samples = std::move(samples)] {
    const std::vector<std::byte> bytes = audio::encode(format, options, samples);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string bytes = co_await services.workers.run(executor, std::move(work));
  co_return bytes;
}

}  // namespace shoal::server
