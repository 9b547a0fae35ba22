#include "text/phonemes/timestamps.h"

#include <algorithm>

#include "base/error.h"

namespace shoal::phonemes {

std::vector<WordTime> word_times(std::span<const Token> tokens, std::span<const int64_t> durations) {
  constexpr double kHalfFramesPerSecond = 80;
  const auto symbols = static_cast<size_t>(count_code_points(phonemes_of(tokens)));
  CHECK(durations.size() == symbols + 2, durations.size(), " durations, ", symbols, " phonemes and two pads");

  std::vector<WordTime> times;
  int64_t left = 2 * std::max<int64_t>(0, durations[0] - 3);  // half frames, so that a space can be halved
  int64_t right = left;
  size_t at = 1;
  for (size_t i = 0; i < tokens.size() && at + 1 < durations.size(); ++i) {
    const auto length = static_cast<size_t>(count_code_points(tokens[i].phonemes));
    if (length == 0) {
      if (!tokens[i].space_after) continue;
      ++at;  // the space alone
      left += 2 * durations[at - 1];
      right += 2 * durations[at - 1];
      continue;
    }
    int64_t frames = 0;
    for (size_t k = at; k < at + length; ++k) frames += durations[k];
    const bool spaced = tokens[i].space_after && at + length + 1 < durations.size();
    const int64_t space = spaced ? durations[at + length] : 0;
    const double start_s = static_cast<double>(left) / kHalfFramesPerSecond;
    left = right + 2 * frames + space;
    times.push_back({i, start_s, static_cast<double>(left) / kHalfFramesPerSecond});
    right = left + space;
    at += length + (spaced ? 1 : 0);
  }
  return times;
}

}  // namespace shoal::phonemes
