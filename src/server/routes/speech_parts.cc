#include "server/routes/speech_parts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "server/routes/speech_answer.h"
#include "shoal/seeds.h"
#include "text/sentences.h"

namespace shoal::server {
namespace {

constexpr double kSlowestSpeed = 0.25, kFastestSpeed = 4;

// Of ended parts and the one that is heard.
void add_to(SpeechSummary& all, const SpeechSummary& part) {
  if (all.utterances == 0) {
    all.prepared_s = part.prepared_s;
    all.admitted_s = part.admitted_s;
    all.first_audio_s = part.first_audio_s;
  }
  all.frames += part.frames;
  all.utterances += part.utterances;
  all.prompt_columns += part.prompt_columns;
  all.cached_columns += part.cached_columns;
  all.computed_columns += part.computed_columns;
  all.preemptions += part.preemptions;
  all.cut_at_frames = std::max(all.cut_at_frames, part.cut_at_frames);
  all.underruns += part.underruns;
  all.total_s += part.total_s;
  for (const std::string& warning : part.warnings)
    if (std::ranges::count(all.warnings, warning) == 0) all.warnings.push_back(warning);
}

}  // namespace

std::vector<ssml::Part> read_ssml(Engine& engine, SpeechRequest& request) {
  if (!request.voices.empty())
    fail(ErrorCode::unsupported, "voices: SSML names its voices itself, <voice name=...>; send one of them");
  ssml::Document document = ssml::parse(request.text, {.phonemes = engine.traits().phonemes});
  request.text.clear();
  for (const ssml::Part& part : document.parts) {
    if (!part.text.empty()) request.text += (request.text.empty() ? "" : " ") + part.text;
    const double speed = request.speed * part.rate;
    if (speed < kSlowestSpeed || speed > kFastestSpeed)
      fail(ErrorCode::invalid_argument, "speed: expected ", kSlowestSpeed, " to ", kFastestSpeed,
           " with the rates of the SSML, got ", speed);
  }
  std::ranges::move(document.unused, std::back_inserter(request.unused));
  return std::move(document.parts);
}

SpeechParts::SpeechParts(Services& services, Engine& engine, const Request& from, Executor executor,
                         SpeechRequest usual, std::vector<ssml::Part> parts)
    : services_(services),
      engine_(engine),
      from_(from),
      executor_(executor),
      usual_(std::move(usual)),
      parts_(std::move(parts)),
      rate_hz_(engine.sample_rate_hz()),
      models_voice_stays_(!engine.traits().references) {
  if (!usual_.seed) usual_.seed = drawn_seed();
  ended_.seed = *usual_.seed;
  ended_.sample_rate_hz = rate_hz_;
}

void SpeechParts::check_voices() {
  SpeechRequest all = usual_;
  check_and_complete(services_, engine_, from_, all);
  for (const ssml::Part& part : parts_) {
    const std::string voice = part.voice.empty() ? "" : services_.voice_names.voice_for(engine_, part.voice);
    try {
      if (!voice.empty()) engine_.voices().get(voice);
    } catch (const Error& error) {
      tell_unknown_voice(services_, engine_, error);
      throw;
    }
  }
}

Task<> SpeechParts::begin() {
  const auto check = [this] { check_voices(); };
  co_await services_.workers.run(executor_, check);
  const auto is_spoken = [](const ssml::Part& part) { return text::is_speakable(part.text); };
  const auto first = std::ranges::find_if(parts_, is_spoken);
  if (first == parts_.end())
    fail(ErrorCode::invalid_argument, "text: there is nothing in it that can be spoken");
  co_await submit_part(static_cast<size_t>(first - parts_.begin()));
}

SpeechRequest SpeechParts::request_of(size_t index) const {
  const ssml::Part& part = parts_[index];
  SpeechRequest request = usual_;
  request.text = part.text;
  request.speed *= part.rate;
  request.seed = seed_of_utterance(*usual_.seed, index);
  if (part.voice.empty()) return request;
  request.voice = services_.voice_names.voice_for(engine_, part.voice);
  request.references.clear();
  request.encoded_references.clear();
  return request;
}

bool SpeechParts::keeps_voice(size_t part) const {
  return models_voice_stays_ || !parts_[part].voice.empty() || !usual_.voice.empty() ||
         !usual_.references.empty() || !usual_.encoded_references.empty();
}

Task<> SpeechParts::submit_part(size_t part) {
  SpeechRequest request = request_of(part);
  Speech speech = co_await submit_speech(services_, engine_, from_, executor_, std::move(request));
  Spoken next;
  next.part = part;
  next.reader = std::make_unique<SpeechReader>(std::move(speech), executor_);
  if (cancelled_) next.reader->cancel();
  ahead_ = std::move(next);
}

// The next part that is spoken, unless its voice is to follow the one that is heard.
Task<> SpeechParts::submit_ahead() {
  if (ahead_) co_return;
  size_t next = at_ + 1;
  while (next < parts_.size() && !text::is_speakable(parts_[next].text)) ++next;
  if (next >= parts_.size() || !keeps_voice(next)) co_return;
  try {
    co_await submit_part(next);
  } catch (const Error& error) {
    // While something is heard a full queue may empty; what stays wrong is told when its turn comes.
    if (error.code() == ErrorCode::cancelled) throw;
  }
}

std::vector<float> SpeechParts::some_silence() {
  const int64_t piece = std::min<int64_t>(silence_left_, rate_hz_);
  silence_left_ -= piece;
  samples_ += piece;
  return std::vector<float>(static_cast<size_t>(piece));
}

Task<std::vector<float>> SpeechParts::next() {
  while (true) {
    if (cancelled_) fail(ErrorCode::cancelled, "the client has gone");
    if (heard_) {
      std::vector<float> samples = co_await heard_->reader->next();
      if (!samples.empty()) {
        samples_ += static_cast<int64_t>(samples.size());
        co_await submit_ahead();
        co_return samples;
      }
      end_part();
    }
    if (silence_left_ > 0) co_return some_silence();
    if (at_ == parts_.size()) co_return std::vector<float>();
    if (ahead_ && ahead_->part == at_) {
      heard_ = std::exchange(ahead_, std::nullopt);
      begun_at_ = samples_;
    } else if (text::is_speakable(parts_[at_].text)) {
      co_await submit_part(at_);
    } else {
      end_part();
    }
  }
}

// What is left of the part that was heard, and its silence.
void SpeechParts::end_part() {
  if (heard_) {
    std::ranges::move(current_words(), std::back_inserter(words_));
    const Speech& speech = heard_->reader->speech();
    add_to(ended_, speech.summary());
    std::vector<int32_t> codes = keeps_voice(heard_->part) ? std::vector<int32_t>() : speech.codes();
    if (!codes.empty())
      usual_.encoded_references.push_back({.codes = std::move(codes), .text = parts_[heard_->part].text});
    heard_.reset();
  }
  silence_left_ = std::llround(parts_[at_].pause_after_s * rate_hz_);
  ++at_;
}

void SpeechParts::cancel() {
  cancelled_ = true;
  if (heard_) heard_->reader->cancel();
  if (ahead_) ahead_->reader->cancel();
}

SpeechSummary SpeechParts::summary() const {
  SpeechSummary all = ended_;
  if (heard_) add_to(all, heard_->reader->speech().summary());
  all.samples = samples_;
  return all;
}

std::vector<SpokenWord> SpeechParts::current_words() const {
  if (!heard_) return {};
  std::vector<SpokenWord> words = heard_->reader->speech().words(0);
  const double from_s = static_cast<double>(begun_at_) / rate_hz_;
  for (SpokenWord& word : words) {
    word.start_s += from_s;
    word.end_s += from_s;
  }
  return words;
}

std::vector<SpokenWord> SpeechParts::words(size_t first) const {
  std::vector<SpokenWord> all = words_;
  std::ranges::move(current_words(), std::back_inserter(all));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())));
  return all;
}

}  // namespace shoal::server
