#include "text/bpe_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 28;  // parts are indexed with 32 bits, at 40 bytes each

// Where the first `characters` characters end.
size_t cut_position(std::string_view text, int64_t characters) {
  if (characters == 0 || text.size() <= static_cast<size_t>(characters)) return text.size();
  size_t at = 0;
  for (int64_t i = 0; i < characters && at < text.size(); ++i) at += character_bytes(text[at]);
  return at;
}

}  // namespace

BpeTokenizer::BpeTokenizer(BpeModel model, std::string_view file) : model_(std::move(model)) {
  for (int byte = 0; byte < 256; ++byte) {
    const char bytes = static_cast<char>(byte);
    byte_ids_[static_cast<size_t>(byte)] = model_.vocabulary.find({&bytes, 1});
    if (byte_ids_[static_cast<size_t>(byte)] < 0)
      fail(ErrorCode::corrupt_file, file, ": no token for the single byte ", byte);
  }
  semantic_ = model_.specials.semantic_range(file);
  const std::optional<int32_t> end = model_.specials.id_of("<|im_end|>");
  if (!end) fail(ErrorCode::corrupt_file, file, ": special token \"<|im_end|>\" is missing");
  im_end_ = *end;
}

int64_t BpeTokenizer::vocab_size() const {
  return int64_t{std::max(model_.vocabulary.highest_id(), model_.specials.highest_id())} + 1;
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text, SpecialTokens specials) const {
  if (text.size() > kMaxTextBytes)
    fail(ErrorCode::too_large, "text: ", text.size(), " bytes, at most ", kMaxTextBytes, " are accepted");
  require_utf8(text);
  std::vector<int32_t> ids;
  BytePairMerger merger;
  while (!text.empty()) {
    const std::string_view chunk = text.substr(0, cut_position(text, model_.cut_characters));
    size_t done = 0;
    if (specials == SpecialTokens::recognise) {
      while (const auto match = model_.specials.find(chunk, done)) {
        encode_segment(chunk.substr(done, match->begin - done), merger, ids);
        ids.push_back(match->id);
        done = match->begin + match->length;
      }
    }
    encode_segment(chunk.substr(done), merger, ids);
    text.remove_prefix(chunk.size());
  }
  return ids;
}

void BpeTokenizer::encode_segment(std::string_view segment, BytePairMerger& merger,
                                  std::vector<int32_t>& ids) const {
  if (segment.empty()) return;
  if (model_.normalise_nfc) {
    encode_pieces(to_nfc(segment), 0, merger, ids);
  } else {
    encode_pieces(segment, 0, merger, ids);
  }
}

void BpeTokenizer::encode_pieces(std::string_view text, size_t split, BytePairMerger& merger,
                                 std::vector<int32_t>& ids) const {
  if (split == model_.splits.size()) return encode_piece(text, merger, ids);
  model_.splits[split].split(text,
                             [&](std::string_view piece) { encode_pieces(piece, split + 1, merger, ids); });
}

void BpeTokenizer::encode_piece(std::string_view piece, BytePairMerger& merger,
                                std::vector<int32_t>& ids) const {
  if (model_.whole_pieces_first) {
    const int32_t id = model_.vocabulary.find(piece);
    if (id >= 0) return ids.push_back(id);
  }
  using Part = BytePairMerger::Part;
  using Merge = BytePairMerger::Merge;
  if (model_.ranks_are_ids) {
    const auto by_bytes = [&](const Part& left, const Part& right) {
      const int32_t id = model_.vocabulary.find(
          piece.substr(static_cast<size_t>(left.begin), static_cast<size_t>(right.end - left.begin)));
      return Merge{id, id};
    };
    merger.merge(piece, byte_ids_, by_bytes, ids);
  } else {
    const auto by_ids = [&](const Part& left, const Part& right) {
      const auto it = model_.merges.find(uint64_t{static_cast<uint32_t>(left.id)} << 32 |
                                         static_cast<uint32_t>(right.id));
      return it == model_.merges.end() ? Merge{} : it->second;
    };
    merger.merge(piece, byte_ids_, by_ids, ids);
  }
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (const int32_t id : ids) {
    std::string_view bytes = model_.vocabulary.bytes_of(id);
    if (!bytes.data()) bytes = model_.specials.spelling_of(id);
    if (!bytes.data()) fail(ErrorCode::invalid_argument, "ids: ", id, " is not a token of this vocabulary");
    out += bytes;
  }
  return out;
}

}  // namespace shoal::text
