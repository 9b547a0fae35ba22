#include "text/special_token_table.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace shoal::text {
namespace {

constexpr std::string_view kSemanticPrefix = "<|semantic:", kSemanticSuffix = "|>";

// i of "<|semantic:i|>".
std::optional<int32_t> semantic_index(std::string_view spelling) {
  if (!spelling.starts_with(kSemanticPrefix) || !spelling.ends_with(kSemanticSuffix)) return std::nullopt;
  const char* begin = spelling.data() + kSemanticPrefix.size();
  const char* end = spelling.data() + spelling.size() - kSemanticSuffix.size();
  int32_t index = 0;
  if (begin >= end || *begin == '-') return std::nullopt;
  const auto [stop, error] = std::from_chars(begin, end, index);
  return error == std::errc() && stop == end ? std::optional(index) : std::nullopt;
}

}  // namespace

SpecialTokenTable::SpecialTokenTable(std::vector<Token> tokens, std::string_view file)
    : tokens_(std::move(tokens)), by_id_(tokens_.size()) {
  std::sort(tokens_.begin(), tokens_.end());
  std::iota(by_id_.begin(), by_id_.end(), size_t{0});
  std::sort(by_id_.begin(), by_id_.end(),
            [&](size_t a, size_t b) { return tokens_[a].second < tokens_[b].second; });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto& [spelling, id] = tokens_[i];
    if (spelling.empty()) fail(ErrorCode::corrupt_file, file, ": a special token with an empty spelling");
    if (i > 0 && tokens_[i - 1].first == spelling)
      fail(ErrorCode::corrupt_file, file, ": special token \"", spelling, "\" occurs twice");
    if (i > 0 && tokens_[by_id_[i - 1]].second == tokens_[by_id_[i]].second)
      fail(ErrorCode::corrupt_file, file, ": two special tokens have id ", tokens_[by_id_[i]].second);
    starts_a_token_[static_cast<uint8_t>(spelling[0])] = true;
  }
}

std::optional<int32_t> SpecialTokenTable::id_of(std::string_view spelling) const {
  const auto it = std::lower_bound(tokens_.begin(), tokens_.end(), spelling,
                                   [](const Token& token, std::string_view s) { return token.first < s; });
  if (it == tokens_.end() || it->first != spelling) return std::nullopt;
  return it->second;
}

std::string_view SpecialTokenTable::spelling_of(int32_t id) const {
  const auto it = std::lower_bound(by_id_.begin(), by_id_.end(), id,
                                   [&](size_t index, int32_t i) { return tokens_[index].second < i; });
  if (it == by_id_.end() || tokens_[*it].second != id) return {};
  return tokens_[*it].first;
}

// Narrows the sorted spellings to those that agree with the text so far, one byte at a time.
std::optional<SpecialTokenTable::Match> SpecialTokenTable::match_at(std::string_view text, size_t at) const {
  std::optional<Match> longest;
  auto begin = tokens_.begin(), end = tokens_.end();
  for (size_t depth = 0; begin != end; ++depth) {
    if (begin->first.size() == depth) longest = Match{at, depth, (begin++)->second};
    if (at + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto at_depth = [&](const Token& token) { return static_cast<uint8_t>(token.first[depth]); };
    begin = std::partition_point(begin, end, [&](const Token& token) { return at_depth(token) < byte; });
    end = std::partition_point(begin, end, [&](const Token& token) { return at_depth(token) == byte; });
  }
  return longest;
}

std::optional<SpecialTokenTable::Match> SpecialTokenTable::find(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!starts_a_token_[static_cast<uint8_t>(text[at])]) continue;
    if (const auto match = match_at(text, at)) return match;
  }
  return std::nullopt;
}

std::pair<int32_t, int32_t> SpecialTokenTable::semantic_range(std::string_view file) const {
  const std::optional<int32_t> first = id_of("<|semantic:0|>");
  if (!first) fail(ErrorCode::corrupt_file, file, ": special token \"<|semantic:0|>\" is missing");
  int64_t count = 0, highest = 0;
  for (const auto& [spelling, id] : tokens_) {
    const std::optional<int32_t> index = semantic_index(spelling);
    if (!index) continue;
    if (int64_t{*first} + *index != id)
      fail(ErrorCode::corrupt_file, file, ": special token \"", spelling, "\" has id ", id, ", expected ",
           int64_t{*first} + *index, " (semantic ids must be consecutive)");
    ++count;
    highest = std::max<int64_t>(highest, *index);
  }
  if (count != highest + 1)
    fail(ErrorCode::corrupt_file, file, ": ", count, " semantic tokens, but the highest is ", highest);
  return {*first, static_cast<int32_t>(*first + highest)};
}

}  // namespace shoal::text
