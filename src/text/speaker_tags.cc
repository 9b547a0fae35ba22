#include "text/speaker_tags.h"

#include <charconv>
#include <limits>
#include <set>

namespace shoal::text {
namespace {

int number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} ? number : std::numeric_limits<int>::max();
}

}  // namespace

std::optional<SpeakerTag> find_speaker_tag(std::string_view text, size_t from) {
  constexpr std::string_view kOpen = "<|speaker:", kClose = "|>";
  for (size_t begin = from; (begin = text.find(kOpen, begin)) != std::string_view::npos; ++begin) {
    const size_t digits = begin + kOpen.size();
    const size_t end = text.find_first_not_of("0123456789", digits);
    if (end == std::string_view::npos) return std::nullopt;
    if (end > digits && text.substr(end).starts_with(kClose))
      return SpeakerTag{begin, end + kClose.size(), number_of(text.substr(digits, end - digits))};
  }
  return std::nullopt;
}

std::vector<int> speakers_of(std::string_view text) {
  std::vector<int> speakers;
  std::set<int> known;
  for (auto tag = find_speaker_tag(text); tag; tag = find_speaker_tag(text, tag->end))
    if (known.insert(tag->speaker).second) speakers.push_back(tag->speaker);
  return speakers;
}

}  // namespace shoal::text
