// Cuts a text for a model that speaks at most 510 phonemes at once.
#pragma once

#include <string>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

struct ChunkRules {
  int max_phonemes = 510;  // code points of a chunk, 16..510
  // For a waiting listener: the first chunk ends with the first clause, or after about this many words if the
  // clause is too long; the second has at most `second_phonemes`, later ones max_phonemes, so that each is
  // ready before the previous one has been heard. 0: every chunk is as long as possible.
  int first_words = 0;
  int second_phonemes = 200;
};

struct Chunk {
  std::vector<Token> tokens;
  std::string phonemes;      // phonemes_of(tokens); empty: only a pause
  double pause_after_s = 0;  // silence that the text asks for
};

// Cuts token by token and remembers earlier cuts (the rules for the first chunk apply to the first of a text,
// not of a line). No phoneme is lost except the space at a cut.
class Chunker {
 public:
  explicit Chunker(ChunkRules rules);  // throws Error(invalid_argument) for numbers out of range

  // The chunks of one line. A chunk takes as many tokens as fit and is cut after the last ! . ? … in it, else
  // : or ;, else , or —, each with a closing bracket or quote; else at the last space, else anywhere. A cut
  // is only used if the rest fits into the next chunk. Chunks with nothing but marks are dropped.
  std::vector<Chunk> cut(std::vector<Token> tokens);
  // The same, followed by the silence after the line, which is its own chunk if nothing is spoken.
  std::vector<Chunk> cut(std::vector<Token> tokens, double pause_after_s);

 private:
  int limit() const;
  bool cut_first(const std::vector<Token>& tokens, std::vector<Chunk>& chunks, size_t& done);
  void add(std::vector<Token> tokens, std::vector<Chunk>& chunks);

  ChunkRules rules_;
  int made_ = 0;
};

// Phonemes given by the caller, as tokens: words by spaces, marks by themselves. phonemes_of gives them back,
// white space as single spaces and none at the ends.
std::vector<Token> split_phonemes(std::string_view phonemes);

// One space between sounds, none at the beginning and end. A silent token has none: it joins the previous
// one.
void tidy_spaces(std::vector<Token>& tokens);

}  // namespace shoal::phonemes
