#include "server/routes/spoken_answer.h"

#include "base/error.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

// The limit of a body that is sent whole and so held in memory: 50 minutes of 44.1 kHz PCM.
constexpr size_t kMostWholeBytes = size_t{256} << 20;

}  // namespace

SpokenAnswer::SpokenAnswer(Services& services, const Engine& engine, Exchange& exchange,
                           std::unique_ptr<SpeechSource> source)
    : services_(services),
      engine_(engine),
      exchange_(exchange),
      source_(std::move(source)),
      cancel_(exchange, *source_),
      memory_(services.answers) {}

SpokenAnswer::SpokenAnswer(Services& services, const Engine& engine, Exchange& exchange, Speech speech)
    : SpokenAnswer(services, engine, exchange,
                   std::make_unique<SpeechReader>(std::move(speech), exchange.executor())) {}

Task<std::vector<float>> SpokenAnswer::next() {
  try {
    std::vector<float> samples = co_await source_->next();
    if (samples.empty() && summary().samples == 0)
      fail(ErrorCode::invalid_argument, "text: no speech came of it; it or max_new_tokens may be too short");
    samples_ += std::ssize(samples);
    const int rate_hz = summary().sample_rate_hz;
    services_.usage.add_sound(exchange_.request().client, static_cast<double>(samples.size()) / rate_hz);
    co_return samples;
  } catch (const Error& error) {
    hide_paths(engine_, exchange_.request(), error);
    throw;
  }
}

void SpokenAnswer::set_encoder(const AnswerOptions& options, bool is_file) {
  audio::EncoderOptions encoder = options.encoder;
  encoder.sample_rate_hz = options.sample_rate_hz > 0
                               ? options.sample_rate_hz
                               : audio::usual_rate_hz(options.format, summary().sample_rate_hz);
  encoder.rewritable_header = is_file;
  sample_rate_hz_ = encoder.sample_rate_hz;
  const bool bare = options.bare_wav && !is_file && options.format == audio::Format::wav;
  encoder_ = std::make_shared<SoundEncoder>(bare ? audio::Format::pcm_s16le : options.format, encoder,
                                            summary().sample_rate_hz);
}

Task<std::optional<std::string>> SpokenAnswer::next_bytes() {
  if (ended_) co_return std::nullopt;
  std::vector<float> samples = co_await next();
  ended_ = samples.empty();
  if (ended_) co_return encoder_->finish();
  if (!encoder_->is_long(samples.size())) co_return encoder_->encode(samples);
  auto work = [encoder = encoder_, &samples] { return encoder->encode(samples); };
  std::string bytes = co_await services_.workers.run(exchange_.executor(), std::move(work));
  co_return bytes;
}

Task<std::string> SpokenAnswer::whole_file() {
  std::string file;
  while (true) {
    std::optional<std::string> bytes = co_await next_bytes();
    if (!bytes) break;
    memory_.take(std::ssize(*bytes));
    file += *bytes;
    if (file.size() > kMostWholeBytes)
      fail(ErrorCode::too_large, "the answer has more than ", kMostWholeBytes,
           " bytes; ask for it as a stream");
  }
  encoder_->complete_header(file);
  co_return file;
}

std::vector<SpokenWord> SpokenAnswer::new_words() {
  std::vector<SpokenWord> words = source_->words(words_told_);
  // More sound, and its words, may have come since.
  constexpr double kRounding = 1e-6;
  const double given_s = static_cast<double>(samples_) / summary().sample_rate_hz + kRounding;
  std::erase_if(words, [&](const SpokenWord& word) { return word.end_s > given_s; });
  words_told_ += words.size();
  return words;
}

Response SpokenAnswer::head(std::string content_type, Headers headers) {
  const SpeechSummary so_far = summary();
  headers.add("x-shoal-seed", std::to_string(so_far.seed));
  headers.add("x-shoal-sample-rate", std::to_string(sample_rate_hz_));
  if (!so_far.warnings.empty()) headers.add("x-shoal-warnings", warnings_header(so_far.warnings));
  return {.content_type = std::move(content_type), .body = {}, .headers = std::move(headers)};
}

Response SpokenAnswer::stream_head(std::string content_type, Headers headers) {
  headers.add("Cache-Control", "no-cache");
  headers.add("X-Accel-Buffering", "no");
  return head(std::move(content_type), std::move(headers));
}

}  // namespace shoal::server
