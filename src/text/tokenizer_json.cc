#include "text/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "text/bpe_tokenizer.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

// The pattern of a ByteLevel pre-tokenizer with use_regex, that of GPT-2.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

[[noreturn]] void unsupported(std::string_view file, std::string_view what) {
  fail(ErrorCode::unsupported, file, ": ", what, " is not supported");
}

bool is_absent(const Json* value) { return !value || value->is_null(); }

bool flag(const Json& object, std::string_view key, bool otherwise) {
  const Json* value = object.find(key);
  return is_absent(value) ? otherwise : value->as_bool();
}

// The byte of a character of the byte-level alphabet: printable bytes map to themselves, the 68 others are
// numbered from U+0100 on in order.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    std::fill(std::begin(byte_of_), std::end(byte_of_), -1);
    int32_t next = 256;
    for (int32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      byte_of_[printable ? byte : next++] = byte;
    }
  }

  // The bytes of a token as written in the file, or nothing when a character is outside the alphabet.
  std::optional<std::string> decode(std::string_view token) const {
    std::string bytes;
    for (size_t at = 0; at < token.size(); at += character_bytes(token[at])) {
      const char32_t c = code_point_at(token, at);
      if (c >= std::size(byte_of_) || byte_of_[c] < 0) return std::nullopt;
      bytes.push_back(static_cast<char>(byte_of_[c]));
    }
    return bytes;
  }

 private:
  int32_t byte_of_[256 + 68];
};

int32_t checked_id(int64_t id, std::string_view file, std::string_view token) {
  if (id < 0 || id >= kMaxTokens)
    fail(ErrorCode::corrupt_file, file, ": token \"", token.substr(0, 64), "\" has id ", id,
         ", expected 0 to ", kMaxTokens - 1);
  return static_cast<int32_t>(id);
}

std::vector<SpecialTokenTable::Token> read_added_tokens(const Json& document, bool has_normaliser,
                                                        std::string_view file) {
  std::vector<SpecialTokenTable::Token> tokens;
  const Json* added = document.find("added_tokens");
  if (is_absent(added)) return tokens;
  for (const Json& token : added->as_array()) {
    const std::string& content = token.at("content").as_string();
    for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) {
      if (flag(token, key, false)) unsupported(file, concat("added token \"", content, "\" with ", key));
    }
    if (has_normaliser && flag(token, "normalized", false))
      unsupported(file, concat("added token \"", content, "\" with normalized"));
    tokens.emplace_back(content, checked_id(token.at("id").as_integer(), file, content));
  }
  return tokens;
}

bool read_normaliser(const Json& document, std::string_view file) {
  const Json* normaliser = document.find("normalizer");
  if (is_absent(normaliser)) return false;
  const std::string& type = normaliser->at("type").as_string();
  if (type != "NFC") unsupported(file, concat("normalizer ", type));
  return true;
}

void read_split(const Json& split, std::string_view file, std::vector<SplitPattern>& splits) {
  const Json& pattern = split.at("pattern");
  if (!pattern.find("Regex")) unsupported(file, "pre-tokenizer Split with a pattern other than Regex");
  if (split.at("behavior").as_string() != "Isolated")
    unsupported(file, concat("pre-tokenizer Split with behavior ", split.at("behavior").as_string()));
  if (flag(split, "invert", false)) unsupported(file, "pre-tokenizer Split with invert");
  splits.emplace_back(pattern.at("Regex").as_string(), file);
}

// ByteLevel is where text becomes bytes, so it must come, and come last.
std::vector<SplitPattern> read_pre_tokenizer(const Json& document, std::string_view file) {
  const Json* root = document.find("pre_tokenizer");
  if (is_absent(root)) unsupported(file, "a file without pre_tokenizer");
  std::vector<const Json*> steps;
  if (root->at("type").as_string() == "Sequence") {
    for (const Json& step : root->at("pretokenizers").as_array()) steps.push_back(&step);
  } else {
    steps.push_back(root);
  }
  constexpr size_t kMaxSteps = 8;
  if (steps.size() > kMaxSteps) unsupported(file, concat("a sequence of ", steps.size(), " pre-tokenizers"));

  std::vector<SplitPattern> splits;
  bool byte_level = false;
  for (const Json* step : steps) {
    const std::string& type = step->at("type").as_string();
    if (byte_level) unsupported(file, concat("pre-tokenizer ", type, " after ByteLevel"));
    if (type == "Split") {
      read_split(*step, file, splits);
    } else if (type == "ByteLevel") {
      byte_level = true;
      if (flag(*step, "add_prefix_space", true)) unsupported(file, "ByteLevel with add_prefix_space");
      if (flag(*step, "use_regex", true)) splits.emplace_back(kByteLevelPattern, file);
    } else {
      unsupported(file, concat("pre-tokenizer ", type));
    }
  }
  if (!byte_level) unsupported(file, "a pre-tokenizer without ByteLevel");
  return splits;
}

void refuse_unknown_model_options(const Json& model, std::string_view file) {
  const Json* type = model.find("type");
  if (type && !type->is_null() && type->as_string() != "BPE")
    unsupported(file, concat("model ", type->as_string()));
  const Json* dropout = model.find("dropout");
  if (!is_absent(dropout) && dropout->as_number() != 0) unsupported(file, "model with dropout");
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* value = model.find(key);
    if (!is_absent(value) && !value->as_string().empty()) unsupported(file, concat("model with ", key));
  }
  // unk_token can be ignored: every byte has a token (BpeTokenizer), so nothing is unknown.
  if (flag(model, "byte_fallback", false)) unsupported(file, "model with byte_fallback");
}

void read_vocabulary(const Json& model, const SpecialTokenTable& specials, std::string_view file,
                     const ByteAlphabet& alphabet, Vocabulary& vocabulary) {
  for (const auto& [token, value] : model.at("vocab").as_object()) {
    const int32_t id = checked_id(value.as_integer(), file, token);
    const std::string_view added = specials.spelling_of(id);
    if (added.data() && added != token)
      fail(ErrorCode::corrupt_file, file, ": id ", id, " is both \"", token, "\" and added token \"", added,
           "\"");
    if (added.data()) continue;  // only as an added token, so that no ordinary text can become one
    const std::optional<std::string> bytes = alphabet.decode(token);
    if (!bytes) unsupported(file, concat("token \"", token, "\" outside the byte-level alphabet"));
    if (!vocabulary.add(*bytes, id))
      fail(ErrorCode::corrupt_file, file, ": token \"", token, "\" has id ", id, ", which another token has");
  }
}

// The two sides of a merge, written "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> merge_sides(const Json& merge, int64_t index,
                                                          std::string_view file) {
  if (merge.is_array()) {
    const Json::Array& sides = merge.as_array();
    if (sides.size() == 2) return {sides[0].as_string(), sides[1].as_string()};
  } else if (merge.is_string()) {
    const std::string_view both = merge.as_string();
    const size_t space = both.find(' ');
    if (space != std::string_view::npos && both.find(' ', space + 1) == std::string_view::npos)
      return {both.substr(0, space), both.substr(space + 1)};
  }
  fail(ErrorCode::corrupt_file, file, ": model.merges[", index, "]: expected \"a b\" or [\"a\", \"b\"]");
}

void read_merges(const Json& model, std::string_view file, const ByteAlphabet& alphabet, BpeModel& out) {
  const Json::Array& merges = model.at("merges").as_array();
  if (static_cast<int64_t>(merges.size()) > kMaxTokens)
    fail(ErrorCode::corrupt_file, file, ": model.merges has ", merges.size(), " entries");
  out.merges.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merge_sides(merges[rank], static_cast<int64_t>(rank), file);
    const auto id_of = [&](std::string_view token) {
      const std::optional<std::string> bytes = alphabet.decode(token);
      const int32_t id = bytes && !bytes->empty() ? out.vocabulary.find(*bytes) : -1;
      if (id < 0)
        fail(ErrorCode::corrupt_file, file, ": model.merges[", rank, "]: \"", token.substr(0, 64),
             "\" is not in the vocabulary");
      return id;
    };
    const int32_t left_id = id_of(left), right_id = id_of(right);
    const int32_t id = id_of(std::string(left) += right);
    const uint64_t pair = uint64_t{static_cast<uint32_t>(left_id)} << 32 | static_cast<uint32_t>(right_id);
    if (!out.merges.try_emplace(pair, BytePairMerger::Merge{static_cast<int32_t>(rank), id}).second)
      fail(ErrorCode::corrupt_file, file, ": model.merges[", rank, "] occurs twice");
  }
}

void refuse_truncation_and_templates(const Json& document, std::string_view file) {
  for (const std::string_view key : {"truncation", "padding"}) {
    if (!is_absent(document.find(key))) unsupported(file, key);
  }
  const Json* post = document.find("post_processor");  // ByteLevel only moves offsets
  if (!is_absent(post) && post->at("type").as_string() != "ByteLevel")
    unsupported(file, concat("post_processor ", post->at("type").as_string()));
}

}  // namespace

std::unique_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json, std::string_view name) {
  const Json document = Json::parse(json, name);
  refuse_truncation_and_templates(document, name);
  const Json& model = document.at("model");
  refuse_unknown_model_options(model, name);

  BpeModel out;
  out.normalise_nfc = read_normaliser(document, name);
  out.specials = SpecialTokenTable(read_added_tokens(document, out.normalise_nfc, name), name);
  out.splits = read_pre_tokenizer(document, name);
  out.whole_pieces_first = flag(model, "ignore_merges", false);
  const ByteAlphabet alphabet;
  read_vocabulary(model, out.specials, name, alphabet, out.vocabulary);
  read_merges(model, name, alphabet, out);
  return std::make_unique<BpeTokenizer>(std::move(out), name);
}

}  // namespace shoal::text
