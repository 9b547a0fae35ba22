// One utterance of a live conversation: text comes in, sound goes out.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "server/routes/live_listener.h"
#include "server/routes/live_messages.h"
#include "server/routes/live_text.h"
#include "server/routes/services.h"
#include "server/routes/sound_encoder.h"
#include "server/routes/speech_reader.h"
#include "shoal/speech_request.h"

namespace shoal::server {

// How to speak, with everything checked that can be before there is a text.
struct LiveSettings {
  std::string id, format;
  audio::Format audio_format = audio::Format::pcm_s16le;
  int sample_rate_hz = 0;  // of the sound that is sent
  int bitrate_bps = 0;     // of it; 0: its format's
  int model_rate_hz = 0;
  size_t longest_segment = 200;  // bytes
  Engine* engine = nullptr;
  std::shared_ptr<void> held;  // the engine's model, which stays in memory
  bool keeps_voice = false;    // from one segment to the next, without a reference
  SpeechRequest request;       // without text; its references are encoded, its seed is there
};

// How the sound of an utterance is sent.
struct LiveShape {
  std::string id;
  audio::Format format = audio::Format::pcm_s16le;
  int sample_rate_hz = 0;        // 0: the format's usual one
  int bitrate_bps = 0;           // 0: the format's
  size_t longest_segment = 200;  // bytes
};

// Checks and completes a client's request. Blocks: it decodes and encodes clips and looks up a voice. Throws
// the Errors of submitting.
LiveSettings live_settings(Services& services, const Request& from, LiveStart start);
// The same for a request of another API, without its text.
LiveSettings live_settings(Services& services, const Request& from, Engine& engine, SpeechRequest request,
                           LiveShape shape);

// What a client is told of an error, which is counted, and logged when it is the server's.
HttpError told_error(Services& services, const Request& from, const Error& error);

// Lives on the connection's thread. Segments of the text (LiveText) are spoken one after the other, each as
// its own request: the next one is submitted while the previous one is heard. Segment k has the seed
// seed_of_utterance(seed, k). Without a voice the codes of the first segment are the reference of the later
// ones, as in the engine itself, so that the voice stays the same.
class LiveUtterance {
 public:
  LiveUtterance(Services& services, const Request& from, LiveListener& listener, LiveSettings settings);

  // Throws BodyError: too much text that waits, or in all; after end().
  void add(std::string_view text);
  void flush();
  void end();  // once is enough
  void cancel();

  // Speaks until the end, the cancellation or a failure, and tells `done`. Throws Error(cancelled) when the
  // client is gone.
  Task<> speak();
  bool over() const { return over_; }    // `done` has been queued, or the client is gone
  bool ended() const { return ended_; }  // by its `end`
  bool waits_for_text() const { return ahead_.empty() && !ended_; }

 private:
  struct Segment {
    std::string text;
    std::unique_ptr<SpeechReader> reader;
    double at_s = 0;      // when its sound begins
    int64_t samples = 0;  // read
    size_t words_told = 0;
  };

  Task<> speak_segments();
  Task<> submit_ahead();
  Task<> speak_first();
  Task<> send_sound(std::vector<float> samples, std::vector<SpokenWord> words);
  std::vector<SpokenWord> new_words(Segment& segment) const;
  Task<> report(const Error& error);
  size_t room_ahead() const;
  bool has_voice() const;
  void check_there() const;
  double seconds() const;

  Services& services_;
  const Request& from_;
  LiveListener& listener_;
  const Executor executor_;
  LiveSettings settings_;
  const std::shared_ptr<SoundEncoder> encoder_;
  LiveText text_;
  std::optional<std::string> next_text_;  // could not be submitted yet
  std::deque<Segment> ahead_;             // the first is being heard
  Signal changed_;
  int64_t characters_ = 0, samples_ = 0;
  int64_t submitted_ = 0, spoken_ = 0;  // segments
  int64_t cut_at_frames_ = 0;
  std::vector<std::string> warnings_;
  bool left_out_ = false;  // text without a letter or digit
  std::optional<std::chrono::steady_clock::time_point> first_submitted_;
  bool heard_ = false, ended_ = false, cancelled_ = false, over_ = false;
};

}  // namespace shoal::server
