// Pronouncing dictionaries that the user has: misaki's gold and silver files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::phonemes {

// Words of one file in some tens of bytes each.
class Dictionary {
 public:
  struct Entry {
    std::string_view word, phonemes;
    std::string_view at_clause_end;   // empty: as elsewhere
    bool is_spelled_as_noun = false;  // the file has no phonemes for it as a noun: an initialism ("US")
  };

  // A JSON object: word -> phonemes, or word -> {"DEFAULT": phonemes, tag: phonemes or null, ...}. Of the
  // tags, DEFAULT, None (at clause ends) and a null NOUN are used; the others need a tagger and are read
  // past. Throws Error: not_found, io, too_large (64 MiB, a million words), corrupt_file with the word.
  static Dictionary read(const std::string& path);
  static Dictionary parse(std::string_view json, std::string_view name);

  // The word as written, or nothing.
  std::optional<Entry> find(std::string_view word) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Place {
    uint32_t begin = 0;
    uint16_t length = 0;
  };
  struct Stored {
    Place word, phonemes, at_clause_end;
    bool is_spelled_as_noun = false;
  };
  Place keep(std::string_view text);
  std::string_view view(Place place) const {
    return std::string_view(letters_).substr(place.begin, place.length);
  }

  std::string letters_;          // of all entries, end to end
  std::vector<Stored> entries_;  // in order of their words
};

}  // namespace shoal::phonemes
