#include "server/routes/live_utterance.h"

#include <algorithm>
#include <utility>

#include "audio/encoder.h"
#include "base/error.h"
#include "server/observe/log_sink.h"
#include "server/routes/speech_answer.h"
#include "server/routes/speech_fields.h"
#include "shoal/seeds.h"
#include "text/characters.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

using Clock = std::chrono::steady_clock;

// Text that has not been spoken: minutes of it. A language model writes ten times as fast as anybody speaks.
constexpr size_t kMostPendingBytes = size_t{64} << 10;
// The current segment and the next one. More would take places in the queue from others without a gain.
constexpr size_t kSegmentsAhead = 2;

SpeechRequest request_of(const VoiceNames& names, Engine& engine, LiveStart& start) {
  SpeechRequest request;
  if (!start.voice.empty() && !start.references.empty())
    fail(ErrorCode::invalid_argument, "voice: give a voice or reference clips, not both");
  if (start.repetition_penalty == 0.0f)
    throw BodyError(ErrorCode::invalid_argument, "repetition_penalty",
                    "expected more than 0, at most 2, got 0");
  request.voice = names.voice_for(engine, start.voice);
  request.references = std::move(start.references);
  take_sampling(start, request);
  request.normalise = start.normalize;
  request.speed = start.speed;
  request.volume = start.volume;
  request.language = start.language;
  request.unused = std::move(start.unused);
  if (start.timeout) request.timeout = as_timeout(*start.timeout);
  return request;
}

// Once for all segments.
void encode_references(Engine& engine, SpeechRequest& request) {
  for (const ReferenceClip& clip : request.references)
    request.encoded_references.push_back(
        {.codes = engine.encode(clip.audio).codes, .text = clip.text, .speaker = clip.speaker});
  request.references.clear();
}

// The part of an error that the client may see.
Error told_of(const Engine& engine, const Request& from, const Error& error) {
  try {
    hide_paths(engine, from, error);
  } catch (const Error& other) {
    return other;
  }
  return error;
}

audio::EncoderOptions encoder_options(const LiveSettings& settings) {
  audio::EncoderOptions options;
  options.sample_rate_hz = settings.sample_rate_hz;
  options.bitrate_bps = settings.bitrate_bps;
  return options;
}

}  // namespace

LiveSettings live_settings(Services& services, const Request& from, LiveStart start) {
  Engine& engine = *services.models.named(start.model).engine;
  const auto held = engine.hold();
  SpeechRequest request = request_of(services.voice_names, engine, start);
  return live_settings(services, from, engine, std::move(request),
                       {.id = start.id,
                        .format = audio::parse_format(start.format).value(),
                        .sample_rate_hz = start.sample_rate.value_or(0),
                        .bitrate_bps = start.bitrate_bps,
                        .longest_segment = static_cast<size_t>(start.chunk_length)});
}

LiveSettings live_settings(Services& services, const Request& from, Engine& engine, SpeechRequest request,
                           LiveShape shape) {
  LiveSettings settings;
  settings.id = std::move(shape.id);
  settings.audio_format = shape.format;
  settings.format = audio::name_of(shape.format);
  settings.bitrate_bps = shape.bitrate_bps;
  settings.longest_segment = shape.longest_segment;
  settings.engine = &engine;
  settings.held = engine.hold();
  settings.model_rate_hz = engine.sample_rate_hz();
  settings.keeps_voice = !engine.traits().references;
  settings.sample_rate_hz = shape.sample_rate_hz;
  if (settings.sample_rate_hz == 0)
    settings.sample_rate_hz = audio::usual_rate_hz(settings.audio_format, settings.model_rate_hz);
  settings.request = std::move(request);
  if (!settings.request.seed) settings.request.seed = drawn_seed();
  // The engine never splits a segment again, except for models with a shorter limit.
  settings.request.chunk_length = engine.traits().phonemes ? SpeechRequest().chunk_length : 0;
  check_and_complete(services, engine, from, settings.request);
  try {
    if (!settings.request.voice.empty()) engine.voices().get(settings.request.voice);
    encode_references(engine, settings.request);
  } catch (const Error& error) {
    tell_unknown_voice(services, engine, error);
    hide_paths(engine, from, error);
    throw;
  }
  return settings;
}

HttpError told_error(Services& services, const Request& from, const Error& error) {
  services.metrics.count_error(name_of(error.code()));
  HttpError told = http_error(error);
  if (told.status == 500) log_failure(from, error.message());
  return told;
}

LiveUtterance::LiveUtterance(Services& services, const Request& from, LiveListener& listener,
                             LiveSettings settings)
    : services_(services),
      from_(from),
      listener_(listener),
      executor_(listener.writer().executor()),
      settings_(std::move(settings)),
      encoder_(std::make_shared<SoundEncoder>(settings_.audio_format, encoder_options(settings_),
                                              settings_.model_rate_hz)),
      text_(settings_.longest_segment),
      changed_(executor_) {}

void LiveUtterance::add(std::string_view text) {
  if (ended_)
    fail(ErrorCode::invalid_argument,
         "type: the utterance has had its `end`; `start` the next one after `done`");
  const size_t pending = text_.pending_bytes() + text.size();
  if (pending > kMostPendingBytes)
    throw BodyError(ErrorCode::too_large, "text",
                    concat(pending, " bytes would wait to be spoken, at most ", kMostPendingBytes, " may"));
  const int64_t characters = characters_ + text::count_characters(text);
  const int64_t most = services_.config.max_text_length;
  if (most > 0 && characters > most)
    throw BodyError(ErrorCode::too_large, "text",
                    concat("expected at most ", most, " characters in one utterance, got ", characters));
  text_.add(text);
  characters_ = characters;
  changed_.notify();
}

void LiveUtterance::flush() {
  text_.flush();
  changed_.notify();
}

void LiveUtterance::end() {
  ended_ = true;
  flush();
}

void LiveUtterance::cancel() {
  cancelled_ = true;
  for (Segment& segment : ahead_) segment.reader->cancel();
  changed_.notify();
}

void LiveUtterance::check_there() const {
  if (cancelled_) fail(ErrorCode::cancelled, "the utterance was cancelled");
}

bool LiveUtterance::has_voice() const {
  return settings_.keeps_voice || !settings_.request.voice.empty() ||
         !settings_.request.encoded_references.empty();
}

size_t LiveUtterance::room_ahead() const { return has_voice() ? kSegmentsAhead : 1; }

double LiveUtterance::seconds() const {
  return static_cast<double>(samples_) / static_cast<double>(settings_.model_rate_hz);
}

Task<> LiveUtterance::submit_ahead() {
  while (ahead_.size() < room_ahead()) {
    if (!next_text_) next_text_ = text_.next();
    if (!next_text_) co_return;
    if (!text::is_speakable(*next_text_)) {
      left_out_ = left_out_ || !text::strip_white_space(*next_text_).empty();
      next_text_.reset();
      continue;
    }
    SpeechRequest request = settings_.request;
    request.text = text::strip_white_space(*next_text_);  // as in the utterances of a longer text
    request.seed = seed_of_utterance(*settings_.request.seed, static_cast<size_t>(submitted_));
    if (!first_submitted_) first_submitted_ = Clock::now();
    try {
      Speech speech =
          co_await submit_speech(services_, *settings_.engine, from_, executor_, std::move(request));
      ahead_.push_back({.text = std::move(*next_text_),
                        .reader = std::make_unique<SpeechReader>(std::move(speech), executor_)});
    } catch (const Error& error) {
      // While something is heard a full queue may empty.
      if (error.code() != ErrorCode::resource_exhausted || ahead_.empty()) throw;
      co_return;
    }
    next_text_.reset();
    ++submitted_;
    check_there();
  }
}

// Those that end in the samples that were read.
std::vector<SpokenWord> LiveUtterance::new_words(Segment& segment) const {
  constexpr double kRounding = 1e-6;
  std::vector<SpokenWord> words = segment.reader->speech().words(segment.words_told);
  const double given_s = static_cast<double>(segment.samples) / settings_.model_rate_hz + kRounding;
  std::erase_if(words, [&](const SpokenWord& word) { return word.end_s > given_s; });
  segment.words_told += words.size();
  for (SpokenWord& word : words) {
    word.start_s += segment.at_s;
    word.end_s += segment.at_s;
  }
  return words;
}

Task<> LiveUtterance::send_sound(std::vector<float> samples, std::vector<SpokenWord> words) {
  samples_ += static_cast<int64_t>(samples.size());
  services_.usage.add_sound(from_.client, static_cast<double>(samples.size()) / settings_.model_rate_hz);
  std::string bytes;
  if (encoder_->is_long(samples.size())) {
    auto work = [encoder = encoder_, &samples] { return encoder->encode(samples); };
    bytes = co_await services_.workers.run(executor_, std::move(work));
  } else {
    bytes = encoder_->encode(samples);
  }
  const bool audible = !bytes.empty();
  if (!audible && words.empty()) co_return;
  co_await listener_.sound(std::move(bytes), std::move(words));
  if (!audible || std::exchange(heard_, true)) co_return;
  services_.metrics.live_first_audio(std::chrono::duration<double>(Clock::now() - *first_submitted_).count());
}

Task<> LiveUtterance::speak_first() {
  Segment& segment = ahead_.front();
  bool announced = false;
  while (true) {
    std::vector<float> samples = co_await segment.reader->next();
    if (samples.empty()) break;
    check_there();
    if (!std::exchange(announced, true)) {
      segment.at_s = seconds();
      co_await listener_.segment(spoken_, segment.text, segment.at_s);
      ++spoken_;
    }
    segment.samples += static_cast<int64_t>(samples.size());
    std::vector<SpokenWord> words = new_words(segment);
    co_await send_sound(std::move(samples), std::move(words));
    check_there();
    co_await submit_ahead();
  }
  Speech& speech = segment.reader->speech();
  SpeechSummary summary = speech.summary();
  cut_at_frames_ = std::max(cut_at_frames_, summary.cut_at_frames);
  for (std::string& warning : summary.warnings)
    if (std::ranges::count(warnings_, warning) == 0) warnings_.push_back(std::move(warning));
  if (has_voice()) co_return;
  std::vector<int32_t> codes = speech.codes();
  if (codes.empty()) co_return;
  const std::string_view words = text::strip_white_space(segment.text);
  settings_.request.encoded_references.push_back({.codes = std::move(codes), .text = std::string(words)});
}

Task<> LiveUtterance::speak_segments() {
  while (true) {
    check_there();
    co_await submit_ahead();
    if (!ahead_.empty()) {
      co_await speak_first();
      ahead_.pop_front();
    } else if (ended_) {
      break;
    } else {
      co_await changed_.wait();
    }
  }
  if (submitted_ == 0 && left_out_) warnings_.emplace_back("text: there is nothing in it that can be spoken");
  if (submitted_ > 0 && samples_ == 0)
    fail(ErrorCode::invalid_argument, "text: no speech came of it; it or max_new_tokens may be too short");
  std::string last = encoder_->finish();
  std::vector<SpokenWord> no_words;
  if (!last.empty()) co_await listener_.sound(std::move(last), std::move(no_words));
}

Task<> LiveUtterance::report(const Error& error) {
  const HttpError told = told_error(services_, from_, error);
  co_await listener_.failed(told);
}

Task<> LiveUtterance::speak() {
  services_.metrics.speaking(1);
  std::optional<Error> failure;
  try {
    co_await speak_segments();
  } catch (const Error& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure = Error(ErrorCode::resource_exhausted, "out of memory");
  } catch (const std::exception& error) {
    failure = Error(ErrorCode::internal, error.what());
  }
  ahead_.clear();
  settings_.held.reset();
  services_.metrics.speaking(-1);
  if (listener_.writer().broken()) over_ = true;
  if (over_) co_return;
  if (failure && !cancelled_) co_await report(told_of(*settings_.engine, from_, *failure));
  const char* outcome = cancelled_ ? "cancelled" : failure ? "failed" : "completed";
  over_ = true;
  const LiveDone done{.id = settings_.id,
                      .outcome = outcome,
                      .seconds = seconds(),
                      .segments = spoken_,
                      .seed = *settings_.request.seed,
                      .cut_at_frames = cut_at_frames_,
                      .warnings = std::move(warnings_)};
  co_await listener_.done(done);
}

}  // namespace shoal::server
