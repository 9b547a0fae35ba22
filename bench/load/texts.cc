#include "bench/load/texts.h"

#include <utility>

#include "base/error.h"
#include "bench/measure/draws.h"
#include "bench/measure/sentences.h"

namespace shoal::load {
namespace {

constexpr size_t kShort = 60, kMedium = 200, kLong = 700;
constexpr size_t kTexts = 512;

std::string opening(uint64_t seed, uint64_t index) {
  using bench::Draw, bench::draw_below;
  const auto people = bench::people(), places = bench::places();
  return concat(people[draw_below(people.size(), seed, index, Draw::person)], " writes from ",
                places[draw_below(places.size(), seed, index, Draw::place)], ".");
}

std::vector<std::string_view> sentences_between(size_t least, size_t most) {
  std::vector<std::string_view> found;
  for (const std::string_view sentence : bench::sentences())
    if (sentence.size() >= least && sentence.size() < most) found.push_back(sentence);
  return found;
}

}  // namespace

std::vector<std::string> built_in_texts(std::string_view set, uint64_t seed) {
  std::vector<std::string> texts;
  if (set == "short") {
    for (const std::string_view sentence : sentences_between(0, kShort)) texts.emplace_back(sentence);
    for (uint64_t i = 0; i < kTexts; ++i) texts.push_back(opening(seed, i));
    return texts;
  }
  if (set != "medium" && set != "long")
    fail(ErrorCode::invalid_argument, "texts: expected short, medium, long or a file, got \"", set, "\"");
  const std::vector<std::string_view> sentences =
      sentences_between(kShort, set == "medium" ? kMedium - 30 : kLong);
  for (uint64_t i = 0; i < kTexts; ++i) {
    std::string text = opening(seed, i);
    uint64_t next = i;
    do text += concat(" ", sentences[next++ % sentences.size()]);
    while (set == "long" && text.size() < kLong);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace shoal::load
