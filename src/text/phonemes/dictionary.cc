#include "text/phonemes/dictionary.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace shoal::phonemes {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{16} << 20;  // the largest published one has 4 MB
constexpr size_t kMaxWords = 1'000'000;
constexpr size_t kMaxWordBytes = 256;

std::string_view text_of(const Json& value) {
  if (!value.is_string()) fail(ErrorCode::corrupt_file, value.where(), ": expected phonemes (a string)");
  const std::string& text = value.as_string();
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; });
  if (text.empty() || text.size() > kMaxWordBytes || has_control)
    fail(ErrorCode::corrupt_file, value.where(), ": expected 1 to ", kMaxWordBytes,
         " bytes of phonemes without control characters");
  return text;
}

}  // namespace

Dictionary Dictionary::read(const std::string& path) {
  return parse(read_file(path, kMaxFileBytes), file_name(path));
}

Dictionary Dictionary::parse(std::string_view json, std::string_view name) {
  const Json document = Json::parse(json, name);
  if (!document.is_object()) fail(ErrorCode::corrupt_file, name, ": expected an object of words");
  const Json::Object& words = document.as_object();
  if (words.size() > kMaxWords)
    fail(ErrorCode::too_large, name, ": at most ", kMaxWords, " words expected, got ", words.size());

  Dictionary dictionary;
  dictionary.entries_.reserve(words.size());
  for (const auto& [word, value] : words) {
    if (word.empty() || word.size() > kMaxWordBytes)
      fail(ErrorCode::corrupt_file, value.where(), ": expected a word of 1 to ", kMaxWordBytes, " bytes");
    Stored entry;
    entry.word = dictionary.keep(word);
    if (!value.is_object()) {
      entry.phonemes = dictionary.keep(text_of(value));
    } else {
      const Json* usual = value.find("DEFAULT");
      if (!usual) fail(ErrorCode::corrupt_file, value.where(), ": no DEFAULT among its tags");
      for (const auto& [tag, phonemes] : value.as_object()) {
        if (!phonemes.is_null()) text_of(phonemes);
      }
      entry.phonemes = dictionary.keep(text_of(*usual));
      const Json* last = value.find("None");
      if (last && !last->is_null()) entry.at_clause_end = dictionary.keep(text_of(*last));
      const Json* noun = value.find("NOUN");
      entry.is_spelled_as_noun = noun && noun->is_null();
    }
    dictionary.entries_.push_back(entry);
  }
  std::sort(dictionary.entries_.begin(), dictionary.entries_.end(), [&](const Stored& a, const Stored& b) {
    return dictionary.view(a.word) < dictionary.view(b.word);
  });
  return dictionary;
}

Dictionary::Place Dictionary::keep(std::string_view text) {
  const Place place{static_cast<uint32_t>(letters_.size()), static_cast<uint16_t>(text.size())};
  letters_ += text;
  return place;
}

std::optional<Dictionary::Entry> Dictionary::find(std::string_view word) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), word,
      [&](const Stored& entry, std::string_view wanted) { return view(entry.word) < wanted; });
  if (found == entries_.end() || view(found->word) != word) return std::nullopt;
  return Entry{view(found->word), view(found->phonemes), view(found->at_clause_end),
               found->is_spelled_as_noun};
}

}  // namespace shoal::phonemes
