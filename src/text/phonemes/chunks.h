// Where a text is cut for a model that speaks at most 510 phonemes at a time.
#pragma once

#include <string>
#include <vector>

#include "text/phonemes/token.h"

namespace shoal::phonemes {

struct ChunkRules {
  int max_phonemes = 510;  // code points of a chunk, 16..510
  // For a listener who waits: the first chunk ends with the first clause, or after about this many words
  // where that is too long; the second is of at most `second_phonemes`, those behind it of max_phonemes, so
  // that each is ready before the one in front of it has been heard. 0: every chunk as long as can be.
  int first_words = 0;
  int second_phonemes = 200;
};

struct Chunk {
  std::vector<Token> tokens;
  std::string phonemes;      // phonemes_of(tokens); empty: only a pause
  double pause_after_s = 0;  // silence that the text asks for
};

// Cuts token by token, with what it has already cut in mind (the rules for the first chunk are for the first
// of a text, not of a line). No phoneme is ever lost but the space at a cut.
class Chunker {
 public:
  explicit Chunker(ChunkRules rules);  // throws Error(invalid_argument) for numbers out of range

  // The chunks of one line. A chunk takes as many tokens as fit and is cut behind the last ! . ? … in it,
  // else : or ;, else , or —, each with a closing bracket or quote; else at the last space, else anywhere. A
  // cut is only taken when what it leaves fits into the next chunk. Chunks without anything but marks are
  // left out.
  std::vector<Chunk> cut(std::vector<Token> tokens);
  // The same with the silence behind the line, which is a chunk of its own where nothing is said.
  std::vector<Chunk> cut(std::vector<Token> tokens, double pause_after_s);

 private:
  int limit() const;
  bool cut_first(const std::vector<Token>& tokens, std::vector<Chunk>& chunks, size_t& done);
  void add(std::vector<Token> tokens, std::vector<Chunk>& chunks);

  ChunkRules rules_;
  int made_ = 0;
};

// Phonemes that the caller wrote, as tokens: words by spaces, marks by themselves. phonemes_of gives them
// back, white space as single spaces and none at the ends.
std::vector<Token> split_phonemes(std::string_view phonemes);

// One space where sounds are apart, none in front and at the end. A silent token has none: it stands with the
// one before.
void tidy_spaces(std::vector<Token>& tokens);

}  // namespace shoal::phonemes
