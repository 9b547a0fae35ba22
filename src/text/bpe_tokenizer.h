// The byte-level BPE tokenizer behind both file formats.
#pragma once

#include <array>
#include <unordered_map>
#include <utility>

#include "text/byte_pair_merger.h"
#include "text/special_token_table.h"
#include "text/split_pattern.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace shoal::text {

// The content of a tokenizer file.
struct BpeModel {
  Vocabulary vocabulary;  // ordinary tokens; one for every single byte (require_all_bytes)
  SpecialTokenTable specials;
  std::vector<SplitPattern> splits;  // applied in order, each to the pieces of the one before
  // (left id << 32 | right id) -> merge. Empty in tiktoken files: there a pair merges when its bytes are a
  // token, and the token's id is the rank.
  std::unordered_map<uint64_t, BytePairMerger::Merge> merges;
  bool ranks_are_ids = false;      // tiktoken
  bool whole_pieces_first = true;  // a piece that is a token is not merged from its bytes
  bool normalise_nfc = false;
  // The text is cut after this many characters before anything else (0: never), as in tiktoken's wrapper.
  int64_t cut_characters = 0;
};

class BpeTokenizer final : public Tokenizer {
 public:
  // `file` names the source in errors: corrupt_file when a single byte has no token, when "<|im_end|>" is
  // missing, or for the semantic range (SpecialTokenTable::semantic_range).
  BpeTokenizer(BpeModel model, std::string_view file);

  std::vector<int32_t> encode(std::string_view text, SpecialTokens specials) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> special_id(std::string_view spelling) const override {
    return model_.specials.id_of(spelling);
  }
  int32_t semantic_begin() const override { return semantic_.first; }
  int32_t semantic_end() const override { return semantic_.second; }
  int32_t im_end() const override { return im_end_; }
  int64_t vocab_size() const override;

 private:
  void encode_segment(std::string_view segment, BytePairMerger& merger, std::vector<int32_t>& ids) const;
  void encode_pieces(std::string_view text, size_t split, BytePairMerger& merger,
                     std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, BytePairMerger& merger, std::vector<int32_t>& ids) const;

  BpeModel model_;
  std::array<int32_t, 256> byte_ids_;
  std::pair<int32_t, int32_t> semantic_;
  int32_t im_end_;
};

}  // namespace shoal::text
