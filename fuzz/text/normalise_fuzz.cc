// Any text: normalising is idempotent, splitting loses nothing and keeps its limit, the turns of speakers are
// whole and grouped within their limits.
#include <cstdlib>
#include <string>
#include <vector>

#include "text/characters.h"
#include "text/normalise.h"
#include "text/prompt.h"
#include "text/sentences.h"
#include "text/speaker_tags.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::string without_white_space(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += shoal::text::character_bytes(text[at])) {
    const char32_t c = shoal::text::code_point_at(text, at);
    if (!shoal::text::is_white_space(c)) shoal::text::append_utf8(out, c);
  }
  return out;
}

void check_split(std::string_view text, int max_bytes) {
  std::string joined;
  for (const std::string& utterance : shoal::text::split_utterances(text, max_bytes)) {
    require(!utterance.empty() && utterance.size() <= static_cast<size_t>(max_bytes));
    require(shoal::text::find_invalid_utf8(utterance) == std::string_view::npos);
    joined += utterance;
  }
  require(without_white_space(joined) == without_white_space(text));
}

// Every turn begins with its tag and has no other; in groups they follow each other as they came.
void check_turns(std::string_view text, int max_bytes) {
  constexpr int kMostTurns = 5;
  const std::vector<std::string> turns = shoal::text::split_s2_turns(text);
  std::string joined, grouped;
  for (const std::string& turn : turns) {
    const auto tag = shoal::text::find_speaker_tag(turn);
    require(tag && tag->begin == 0 && tag->speaker >= 0);
    require(!shoal::text::find_speaker_tag(turn, tag->end));
    joined += turn + "\n";
  }
  require(turns.empty() == shoal::text::speakers_of(text).empty());
  for (const std::string& group : shoal::text::group_s2_turns(turns, max_bytes, kMostTurns)) {
    const size_t count = shoal::text::split_s2_turns(group).size();
    require(count >= 1 && count <= kMostTurns);
    require(count == 1 || group.size() - (count - 1) <= static_cast<size_t>(max_bytes));
    grouped += group + "\n";
  }
  require(grouped == joined);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int max_bytes = 16 + data[0];
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (size_t bad; (bad = shoal::text::find_invalid_utf8(text)) != std::string_view::npos;) text[bad] = '?';

  const std::string once = shoal::text::normalise_english(text);
  require(shoal::text::find_invalid_utf8(once) == std::string_view::npos);
  require(shoal::text::normalise_english(once) == once);
  const std::string kept = shoal::text::normalise_english(text, shoal::text::Brackets::keep);
  require(shoal::text::normalise_english(kept, shoal::text::Brackets::keep) == kept);
  check_turns(text, max_bytes);
  check_turns(once, max_bytes);
  check_split(text, max_bytes);
  check_split(once, max_bytes);
  return 0;
}
