#include "text/byte_pair_merger.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

namespace shoal::text {
namespace {

using Ranks = std::map<std::string, int32_t>;

// The definition, word for word: look at all pairs, merge the lowest (leftmost on ties), begin again.
std::vector<int32_t> merge_by_definition(const std::string& piece, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  while (true) {
    int32_t best = INT32_MAX;
    size_t where = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = ranks.find(parts[i] + parts[i + 1]);
      if (it != ranks.end() && it->second < best) {
        best = it->second;
        where = i;
      }
    }
    if (best == INT32_MAX) break;
    parts[where] += parts[where + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
  std::vector<int32_t> ids;
  for (const std::string& part : parts) ids.push_back(ranks.at(part));
  return ids;
}

std::vector<int32_t> merge(const std::string& piece, const Ranks& ranks) {
  std::array<int32_t, 256> byte_ids{};
  for (const auto& [token, rank] : ranks) {
    if (token.size() == 1) byte_ids[static_cast<uint8_t>(token[0])] = rank;
  }
  BytePairMerger merger;
  std::vector<int32_t> ids;
  const auto by_bytes = [&](const BytePairMerger::Part& left, const BytePairMerger::Part& right) {
    const auto it = ranks.find(
        piece.substr(static_cast<size_t>(left.begin), static_cast<size_t>(right.end - left.begin)));
    return it == ranks.end() ? BytePairMerger::Merge{} : BytePairMerger::Merge{it->second, it->second};
  };
  merger.merge(piece, byte_ids, by_bytes, ids);
  return ids;
}

char random_letter(std::mt19937& random, int letters) {
  return static_cast<char>('a' + static_cast<int>(random() % static_cast<uint32_t>(letters)));
}

// Any set of tokens, also such as a trainer would never make (a token none of whose halves is a token).
Ranks random_vocabulary(std::mt19937& random, int letters) {
  std::vector<std::string> tokens;
  for (int i = 0; i < letters; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
  const size_t wanted = tokens.size() + random() % 40;
  for (size_t attempt = 0; attempt < wanted * 4 && tokens.size() < wanted; ++attempt) {
    std::string token;
    for (size_t n = 2 + random() % 4; n > 0; --n) token += random_letter(random, letters);
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  std::shuffle(tokens.begin(), tokens.end(), random);
  Ranks ranks;
  for (const std::string& token : tokens) ranks.emplace(token, static_cast<int32_t>(ranks.size()));
  return ranks;
}

TEST(BytePairMerger, EqualsTheDefinitionOnRandomVocabularies) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const int letters = 1 + static_cast<int>(random() % 4);
    const Ranks ranks = random_vocabulary(random, letters);
    std::string piece;
    for (size_t n = 1 + random() % 60; n > 0; --n) piece += random_letter(random, letters);
    ASSERT_EQ(merge(piece, ranks), merge_by_definition(piece, ranks))
        << "seed " << seed << ", piece " << piece;
  }
}

TEST(BytePairMerger, TheLeftmostOfEqualMergesComesFirst) {
  EXPECT_EQ(merge("aaa", {{"a", 0}, {"aa", 1}}), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(merge("aaaaa", {{"a", 0}, {"aa", 1}, {"aaaa", 2}}), (std::vector<int32_t>{2, 0}));
}

}  // namespace
}  // namespace shoal::text
