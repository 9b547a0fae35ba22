// Special tokens ("<|im_end|>"): spelling <-> id, and where they occur in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::text {

class SpecialTokenTable {
 public:
  using Token = std::pair<std::string, int32_t>;  // spelling, id
  struct Match {
    size_t begin;
    size_t length;
    int32_t id;
  };

  SpecialTokenTable() = default;
  // Spellings and ids must be unique and no spelling empty: Error(corrupt_file) naming `file`.
  SpecialTokenTable(std::vector<Token> tokens, std::string_view file);

  std::optional<int32_t> id_of(std::string_view spelling) const;
  // Spelling of a token, or nullptr data.
  std::string_view spelling_of(int32_t id) const;
  int32_t highest_id() const { return by_id_.empty() ? -1 : tokens_[by_id_.back()].second; }

  // The leftmost token that starts at or after `from`; of several at one place the longest.
  std::optional<Match> find(std::string_view text, size_t from) const;

  // Ids of "<|semantic:0|>" and of the highest "<|semantic:i|>". Error(corrupt_file) naming `file` when they
  // are missing or not consecutive: the models compute id = first + code.
  std::pair<int32_t, int32_t> semantic_range(std::string_view file) const;

 private:
  std::optional<Match> match_at(std::string_view text, size_t at) const;

  std::vector<Token> tokens_;  // sorted by spelling
  std::vector<size_t> by_id_;  // indices into tokens_, sorted by id
  bool starts_a_token_[256] = {};
};

}  // namespace shoal::text
