#include "bench/engine/workload.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "bench/measure/draws.h"
#include "bench/measure/sentences.h"

namespace shoal::bench {
namespace {

constexpr int64_t kMostFrames = 100'000, kMostPhonemes = 50'000;

// In Kokoro's vocabulary.
constexpr std::array<std::string_view, 16> kWords = {"ðə",     "mˈun",  "kˈOld", "wˈɜɹld", "swˈɪm", "fˈɪʃɪz",
                                                     "ˈʌndəɹ", "əbˈʌv", "hˈI",   "wˈɔtəɹ", "ænd",   "slˈOli",
                                                     "ˈivnɪŋ", "tˈɜɹn", "ɪn",    "ɡɹˈin"};
constexpr uint64_t kWordsOfAClause = 6;

// 0 to count - 1 in an order that depends on the seed (Fisher and Yates).
std::vector<size_t> shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw_below(i, seed, i, Draw::sentence)]);
  return order;
}

}  // namespace

void check(const WorkloadOptions& options, int64_t voices) {
  const bool none = options.min_frames == 0 && options.max_frames == 0;
  if (!none &&
      (options.min_frames < 1 || options.max_frames < options.min_frames || options.max_frames > kMostFrames))
    fail(ErrorCode::invalid_argument, "frames: expected N or N-M from 1 to ", kMostFrames, ", got ",
         options.min_frames, "-", options.max_frames);
  const bool texts = options.min_phonemes == 0 && options.max_phonemes == 0;
  if (!texts && (options.min_phonemes < 1 || options.max_phonemes < options.min_phonemes ||
                 options.max_phonemes > kMostPhonemes))
    fail(ErrorCode::invalid_argument, "phonemes: expected N or N-M from 1 to ", kMostPhonemes, ", got ",
         options.min_phonemes, "-", options.max_phonemes);
  if (!options.shared_voice) return;
  if (*options.shared_voice < 0 || *options.shared_voice > 1)
    fail(ErrorCode::invalid_argument, "shared-voice: expected a share from 0 to 1, got ",
         *options.shared_voice);
  if (voices < 2)
    fail(ErrorCode::invalid_argument, "shared-voice: expected two voices or more to choose from, got ",
         voices);
}

Workload::Workload(WorkloadOptions options, std::vector<ReferenceCodes> voices)
    : options_(std::move(options)),
      voices_(std::move(voices)),
      order_(shuffled(sentences().size(), options_.seed)) {
  check(options_, std::ssize(voices_));
}

std::string Workload::text(uint64_t index) const {
  if (!options_.texts.empty()) return options_.texts[index % options_.texts.size()];
  const std::string_view person = people()[draw_below(people().size(), options_.seed, index, Draw::person)];
  const std::string_view place = places()[draw_below(places().size(), options_.seed, index, Draw::place)];
  return concat(person, " writes from ", place, ". ", sentences()[order_[index % order_.size()]]);
}

// So many code points: words, now and then a comma, cut where they are too long.
std::string Workload::phonemes(uint64_t index) const {
  const auto range = static_cast<uint64_t>(options_.max_phonemes - options_.min_phonemes) + 1;
  const auto wanted =
      static_cast<size_t>(options_.min_phonemes) + draw_below(range, options_.seed, index, Draw::length);
  std::string spoken;
  std::vector<size_t> starts;  // of its code points
  for (uint64_t i = 0; starts.size() < wanted; ++i) {
    const size_t begin = spoken.size();
    if (i > 0) spoken += i % kWordsOfAClause == 0 ? ", " : " ";
    spoken += kWords[draw_below(kWords.size(), options_.seed ^ index << 16, i, Draw::word)];
    for (size_t at = begin; at < spoken.size(); ++at)
      if ((spoken[at] & 0xC0) != 0x80) starts.push_back(at);
  }
  spoken.resize(starts[wanted - 1]);
  return spoken + '.';
}

size_t Workload::voice(uint64_t index) const {
  if (!options_.shared_voice) return draw_below(voices_.size(), options_.seed, index, Draw::voice);
  const double drawn = draw_unit(options_.seed, index, Draw::voice), shared = *options_.shared_voice;
  if (drawn < shared) return 0;
  // The rest of (0, 1) is divided into equal parts for the others.
  const double others = static_cast<double>(voices_.size() - 1);
  const auto other = static_cast<size_t>((drawn - shared) / (1 - shared) * others);
  return 1 + std::min(other, voices_.size() - 2);
}

SpeechRequest Workload::request(uint64_t index) const {
  SpeechRequest request;
  if (options_.max_phonemes > 0)
    request.phonemes = phonemes(index);
  else
    request.text = text(index);
  request.seed = draw_bits(options_.seed, index, Draw::seed);
  if (!voices_.empty()) request.encoded_references = {voices_[voice(index)]};
  if (options_.max_frames > 0) {
    const auto range = static_cast<uint64_t>(options_.max_frames - options_.min_frames) + 1;
    request.max_new_tokens =
        options_.min_frames + static_cast<int64_t>(draw_below(range, options_.seed, index, Draw::frames));
    request.chunk_length = 0;  // one utterance, so that the frames are the request's
    request.quirks.keep_last_frame_without_end = true;
  }
  return request;
}

}  // namespace shoal::bench
