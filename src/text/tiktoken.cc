#include "text/tiktoken.h"

#include <charconv>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "text/bpe_tokenizer.h"

namespace shoal::text {
namespace {

// fish-speech's pattern. Its seventh alternative has a mistyped look-ahead, which is kept: the model was
// trained with it.
constexpr std::string_view kSplitPattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
                                           R"(|\p{P})"
                                           R"(|[^\r\n\p{L}\p{N}]?\p{L}+)"
                                           R"(|\p{N})"
                                           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                                           R"(|\s*[\r\n]+)"
                                           R"(|\s+(\?!\S))"
                                           R"(|\s+)";
constexpr int64_t kCutCharacters = 400'000;  // fish-speech's TIKTOKEN_MAX_ENCODE_CHARS

// S1-mini's list, used when special_tokens.json is missing; the semantic tokens follow.
constexpr std::string_view kOwnSpecialTokens[] = {
    "<|begin_of_text|>", "<|end_of_text|>",   "<|pad|>",         "<|im_start|>",
    "<|im_end|>",        "<|phoneme_start|>", "<|phoneme_end|>", "<|tool_call_start|>",
    "<|tool_call_end|>", "<|text|>",          "<|voice|>",       "<|interleave|>",
    "<|audio_start|>",   "<|audio_end|>",     "<|audio|>"};
constexpr int kOwnSemanticTokens = 4096;

// Value of a base64 digit, or -1.
int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Strict: whole groups of four, padding only at the end and over zero bits.
std::optional<std::string> decode_base64(std::string_view digits) {
  if (digits.empty() || digits.size() % 4 != 0) return std::nullopt;
  const size_t padding = digits.ends_with("==") ? 2 : digits.ends_with("=") ? 1 : 0;
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : digits.substr(0, digits.size() - padding)) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

// The next line without its end; `rest` moves past it.
std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

struct RankLine {
  std::string token;
  int32_t rank;
};

// One "<base64> <rank>" line; `where` ("file: line N") opens the message. Nothing for lines that are skipped.
std::optional<RankLine> parse_line(std::string_view line, const std::string& where) {
  if (line.empty()) return std::nullopt;
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) fail(ErrorCode::corrupt_file, where, ": expected \"<base64> <rank>\"");
  if (line.substr(0, space) == "=") return std::nullopt;  // the empty token
  const std::string_view number = line.substr(space + 1);
  int32_t rank = -1;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (error != std::errc() || stop != number.data() + number.size() || rank < 0 || rank >= kMaxTokens)
    fail(ErrorCode::corrupt_file, where, ": rank \"", number.substr(0, 32),
         "\", expected an integer from 0 to ", kMaxTokens - 1);
  std::optional<std::string> token = decode_base64(line.substr(0, space));
  if (!token) fail(ErrorCode::corrupt_file, where, ": token is not valid base64");
  return RankLine{std::move(*token), rank};
}

Vocabulary parse_ranks(std::string_view text, std::string_view name) {
  Vocabulary vocabulary;
  int64_t line_number = 0;
  while (!text.empty()) {
    const std::string where = concat(name, ": line ", ++line_number);
    const std::optional<RankLine> line = parse_line(take_line(text), where);
    if (!line) continue;
    if (vocabulary.find(line->token) >= 0) fail(ErrorCode::corrupt_file, where, ": token occurs twice");
    if (!vocabulary.add(line->token, line->rank))
      fail(ErrorCode::corrupt_file, where, ": rank ", line->rank, " occurs twice");
  }
  // The first special token gets the number of ranks as its id, so a hole would make two tokens collide.
  if (vocabulary.highest_id() + 1 != vocabulary.size())
    fail(ErrorCode::corrupt_file, name, ": ", vocabulary.size(), " tokens, but the highest rank is ",
         vocabulary.highest_id(), " (ranks must be dense from 0)");
  return vocabulary;
}

// id = number of ranks + position; the values of the JSON object are ignored (as fish-speech's tokenizer
// does).
std::vector<SpecialTokenTable::Token> number_special_tokens(std::optional<std::string_view> json,
                                                            std::string_view name, int64_t first) {
  std::vector<std::string> spellings;
  if (json) {
    const Json document = Json::parse(*json, name);
    if (!document.is_object()) fail(ErrorCode::corrupt_file, name, ": expected a JSON object");
    for (const auto& [spelling, value] : document.as_object()) spellings.push_back(spelling);
  } else {
    spellings.assign(std::begin(kOwnSpecialTokens), std::end(kOwnSpecialTokens));
    for (int i = 0; i < kOwnSemanticTokens; ++i) spellings.push_back(concat("<|semantic:", i, "|>"));
  }
  if (static_cast<int64_t>(spellings.size()) > kMaxTokens)
    fail(ErrorCode::corrupt_file, name, ": ", spellings.size(), " special tokens");
  std::vector<SpecialTokenTable::Token> tokens;
  for (std::string& spelling : spellings)
    tokens.emplace_back(std::move(spelling),
                        static_cast<int32_t>(first + static_cast<int64_t>(tokens.size())));
  return tokens;
}

}  // namespace

std::unique_ptr<const Tokenizer> parse_tiktoken(std::string_view ranks, std::string_view ranks_name,
                                                std::optional<std::string_view> special_tokens,
                                                std::string_view special_tokens_name) {
  BpeModel model;
  model.vocabulary = parse_ranks(ranks, ranks_name);
  model.specials =
      SpecialTokenTable(number_special_tokens(special_tokens, special_tokens_name, model.vocabulary.size()),
                        special_tokens_name);
  model.splits.emplace_back(kSplitPattern, ranks_name);
  model.ranks_are_ids = true;
  model.cut_characters = kCutCharacters;
  // Semantic tokens are the business of the special-token file, single bytes of the other.
  return std::make_unique<BpeTokenizer>(std::move(model), concat(ranks_name, " with ", special_tokens_name));
}

}  // namespace shoal::text
