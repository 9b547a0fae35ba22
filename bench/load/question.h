// What is asked of a server of speech, in the form that its API has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/load/reference_clip.h"
#include "bench/load/url.h"

namespace shoal::load {

enum class Api {
  openai,  // POST /v1/audio/speech
  fish,    // POST /v1/tts
  batch,   // Shoal's POST /v1/tts/batch: several texts in a request
  live     // Shoal's WebSocket /v1/audio/stream
};
enum class Container {
  wav,
  pcm,
  bare_wav  // asked for as wav; the official Fish server streams it as PCM, others as a file
};

std::string_view name_of(Api api);
std::string_view name_of(Container container);

struct Target {
  Url url;  // with a path
  Api api = Api::openai;
};

// `api`: "auto" (by the path's ending: /v1/tts is Fish's, /v1/tts/batch and /v1/audio/stream are Shoal's,
// another is OpenAI's; ws and wss are the WebSocket's) or the name of one. A URL without a path, or one that
// ends in /v1, gets the API's own path. Throws Error as parse_url.
Target make_target(std::string_view url, std::string_view api);

// Which requests send a recording that no server has met.
enum class Freshness {
  none,
  request,  // each
  level     // the first one of each clip in a level, and its warm-up; the others repeat it
};

struct References {
  std::vector<ReferenceClip> clips;  // in turn; empty: none
  Freshness freshness = Freshness::none;
  uint64_t salt = 0;  // of the run: two runs differ
};

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

struct Question {
  Container container = Container::wav;
  std::string model;                   // empty: the body names none
  std::vector<std::string> texts;      // at least one; in turn
  std::vector<std::string> voices;     // in turn; empty: the body names none
  std::optional<int64_t> speech_seed;  // text i asks for the seed speech_seed + i
  int64_t items = 1;                   // texts of a request of the batch route
  References references;
  std::vector<std::pair<std::string, std::string>>
      fields;            // more of the body: name, and a value in JSON or as text; values of one name in turn
  HeaderFields headers;  // names and values
  std::string api_key;   // empty: none

  const std::string& text(uint64_t index) const { return texts[index % texts.size()]; }
  std::string voice(uint64_t index) const { return voices.empty() ? "" : voices[index % voices.size()]; }
};

// A request among the others.
struct Turn {
  uint64_t index = 0;        // of the run
  uint64_t level_begin = 0;  // the first index of its level, or of its warm-up
};

// The texts of a request, and the voices that differ: those of a batch with commas between.
std::vector<std::string> texts_of(const Question& question, uint64_t index);
std::string voices_of(const Question& question, uint64_t index);

// A request by HTTP as bytes for the socket.
std::string bytes_of(const Target& target, const Question& question, const Turn& turn);
// The messages of an utterance on the WebSocket.
std::vector<std::string> messages_of(const Question& question, const Turn& turn);
// The key, and `headers`.
HeaderFields header_fields_of(const Question& question);

// Unicode code points of UTF-8 text.
int64_t characters_of(std::string_view text);

}  // namespace shoal::load
