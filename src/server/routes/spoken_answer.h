// An answer in the making: a speech being read, and what becomes of its samples.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/routes/answer_memory.h"
#include "server/routes/services.h"
#include "server/routes/sound_encoder.h"
#include "server/routes/speech_answer.h"
#include "server/routes/speech_reader.h"

namespace shoal::server {

// While it lives, a request counts as speaking. It begins when the body has been understood.
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
  using Clock = std::chrono::steady_clock;

  ServerMetrics& metrics_;
  const Clock::time_point start_ = Clock::now();
  bool heard_ = false;
};

// Lives on the connection's thread; the client's leaving cancels the speech.
class SpokenAnswer {
 public:
  SpokenAnswer(Services& services, const Engine& engine, Exchange& exchange,
               std::unique_ptr<SpeechSource> source);
  SpokenAnswer(Services& services, const Engine& engine, Exchange& exchange, Speech speech);
  SpokenAnswer(const SpokenAnswer&) = delete;
  SpokenAnswer& operator=(const SpokenAnswer&) = delete;

  // The next samples; none: it has ended. Throws the error that ended the speech, and Error(invalid_argument)
  // when there was no sound at all.
  Task<std::vector<float>> next();
  // The next bytes, perhaps none although more will follow; absent: it has ended. After set_encoder.
  Task<std::optional<std::string>> next_bytes();
  // All bytes, with a complete header if set_encoder was told that it is a file. Throws Error(too_large,
  // resource_exhausted).
  Task<std::string> whole_file();
  // Counts bytes that are about to be made against the memory of whole answers, until they are released or
  // the answer has been sent. whole_file() counts its own. Throws Error(resource_exhausted).
  void hold(size_t bytes) { memory_.take(static_cast<int64_t>(bytes)); }
  void let_go(size_t bytes) { memory_.let_go(static_cast<int64_t>(bytes)); }
  // is_file: the header can be completed afterwards.
  void set_encoder(const AnswerOptions& options, bool is_file);

  // The words that end in the sound of next() and were not returned before.
  std::vector<SpokenWord> new_words();
  SpeechSummary summary() const { return source_->summary(); }
  // The head of the answer; its headers describe the speech so far.
  Response head(std::string content_type, Headers headers);
  // The same for an answer in pieces, which no proxy should gather or keep.
  Response stream_head(std::string content_type, Headers headers);

 private:
  Services& services_;
  const Engine& engine_;
  Exchange& exchange_;
  const std::unique_ptr<SpeechSource> source_;
  CancelWhenGone cancel_;
  std::shared_ptr<SoundEncoder> encoder_;
  AnswerMemory memory_;
  int64_t samples_ = 0;  // that next() has given
  size_t words_told_ = 0;
  int sample_rate_hz_ = 0;
  bool ended_ = false;
};

}  // namespace shoal::server
