// The accepted contents of tokenizer files, and the errors for malformed ones.
#include <ctime>
#include <functional>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/fixtures_testing.h"
#include "text/tiktoken.h"
#include "text/tokenizer_json.h"

namespace shoal::text {
namespace {

using Ids = std::vector<int32_t>;

// "code: message" of the Error that `action` throws.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.message();
  }
  return "no error";
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
  }
  return out;
}

// 256 single bytes in order, then `extra` tokens.
std::string ranks_with(const std::vector<std::string>& extra) {
  std::string file;
  for (int i = 0; i < 256; ++i)
    file += base64(std::string(1, static_cast<char>(i))) + " " + std::to_string(i) + "\n";
  for (size_t i = 0; i < extra.size(); ++i) file += base64(extra[i]) + " " + std::to_string(256 + i) + "\n";
  return file;
}
constexpr std::string_view kSpecials = R"({"<|im_end|>": 5, "<|semantic:0|>": 5, "<|semantic:1|>": "x"})";

std::unique_ptr<const Tokenizer> tiktoken(std::string_view ranks, std::string_view specials = kSpecials) {
  return parse_tiktoken(ranks, "t.tiktoken", specials, "s.json");
}
Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, SpecialTokens::recognise);
}

TEST(Tiktoken, SpecialIdsComeFromThePositionNotTheValue) {
  const auto tokenizer = tiktoken(ranks_with({"ab"}));
  EXPECT_EQ(tokenizer->im_end(), 257);
  EXPECT_EQ(tokenizer->semantic_begin(), 258);
  EXPECT_EQ(tokenizer->semantic_end(), 259);
  EXPECT_EQ(tokenizer->vocab_size(), 260);
}

TEST(Tiktoken, LongestSpecialTokenWins) {
  const auto tokenizer = tiktoken(ranks_with({}), R"({"<|im_end|>": 0, "<|im": 0, "<|semantic:0|>": 0})");
  EXPECT_EQ(encode(*tokenizer, "<|im<|im_end|><|im_"), (Ids{257, 256, 257, '_'}));
}

TEST(Tiktoken, WhiteSpaceOfTheRegexIsThatOfUnicode) {
  // A blank and a character that is not white space stay together before a symbol; PCRE2's own \s has U+180E.
  const auto tokenizer = tiktoken(ranks_with({" \u180E$", " \u0085", " \u3000"}));
  EXPECT_EQ(encode(*tokenizer, " \u180E$"), Ids{256});
  EXPECT_EQ(encode(*tokenizer, " \u0085$"), (Ids{257, '$'}));
  EXPECT_EQ(encode(*tokenizer, " \u3000$"), (Ids{258, '$'}));
}

TEST(Tiktoken, BlankLinesCarriageReturnsAndTheEmptyTokenAreSkipped) {
  std::string file = ranks_with({"ab"});
  file = "\n" + file + "\n= 257\n";
  for (size_t at = 1; (at = file.find('\n', at)) != std::string::npos; at += 2) file.insert(at, 1, '\r');
  EXPECT_EQ(encode(*tiktoken(file), "ab"), Ids{256});
}

TEST(Tiktoken, ErrorsNameTheLine) {
  const auto error_with = [](const std::string& line) {
    return error_of([&] { tiktoken(ranks_with({}) + line); });
  };
  const std::string at = "corrupt_file: t.tiktoken: line 257: ";
  EXPECT_EQ(error_with("YWI="), at + "expected \"<base64> <rank>\"");
  EXPECT_EQ(error_with("YWI= "), at + "rank \"\", expected an integer from 0 to 4194303");
  EXPECT_EQ(error_with("YWI= -1"), at + "rank \"-1\", expected an integer from 0 to 4194303");
  EXPECT_EQ(error_with("YWI= 99999999999999999999"),
            at + "rank \"99999999999999999999\", expected an integer from 0 to 4194303");
  EXPECT_EQ(error_with("YWI= 256x"), at + "rank \"256x\", expected an integer from 0 to 4194303");
  EXPECT_EQ(error_with("YWI= 255"), at + "rank 255 occurs twice");
  EXPECT_EQ(error_with("QQ== 256"), at + "token occurs twice");
  for (const char* bad : {"YW", "YW=I", "Y===", "====", "YWI=YWI=", "Y!I=", "YWJ="})
    EXPECT_EQ(error_with(std::string(bad) + " 256"), at + "token is not valid base64") << bad;
  EXPECT_EQ(error_with("YWI= 300"),
            "corrupt_file: t.tiktoken: 257 tokens, but the highest rank is 300 (ranks must be dense from 0)");
}

TEST(Tiktoken, AVocabularyMustCoverEveryByte) {
  EXPECT_EQ(error_of([] { tiktoken("AA== 0\n"); }),
            "corrupt_file: t.tiktoken with s.json: no token for the single byte 1");
  EXPECT_EQ(error_of([] { tiktoken(""); }),
            "corrupt_file: t.tiktoken with s.json: no token for the single byte 0");
}

TEST(Tiktoken, SpecialTokenLists) {
  const auto error_with = [](std::string_view specials) {
    return error_of([&] { tiktoken(ranks_with({}), specials); });
  };
  EXPECT_NE(error_with("[]").find("s.json: expected a JSON object"), std::string::npos);
  EXPECT_NE(error_with("{}").find("\"<|semantic:0|>\" is missing"), std::string::npos);
  EXPECT_NE(error_with(R"({"<|semantic:0|>": 0})").find("\"<|im_end|>\" is missing"), std::string::npos);
  EXPECT_NE(error_with(R"({"": 0, "<|im_end|>": 0, "<|semantic:0|>": 0})").find("empty spelling"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"<|im_end|>": 0, "<|semantic:0|>": 0, "x": 0, "<|semantic:1|>": 0})")
                .find("must be consecutive"),
            std::string::npos);
  EXPECT_NE(error_with(R"({"<|im_end|>": 0, "<|im_end|>": 0, "<|semantic:0|>": 0})").find("duplicate key"),
            std::string::npos);
}

TEST(Tiktoken, EveryTruncationIsReadOrRefused) {
  const std::string file = ranks_with({"ab", "abc"});
  for (size_t length = 0; length < file.size(); ++length) {
    const std::string error = error_of([&] { tiktoken(std::string_view(file).substr(0, length)); });
    EXPECT_TRUE(error.starts_with("corrupt_file: ") || error == "no error") << error;
  }
}

TEST(Tiktoken, APieceOf400000EqualLettersIsQuick) {
  std::vector<std::string> powers;
  for (size_t n = 2; n <= 64; n *= 2) powers.emplace_back(n, 'a');
  const auto tokenizer = tiktoken(ranks_with(powers));
  const std::clock_t begin = std::clock();  // others may compute, too
  EXPECT_EQ(encode(*tokenizer, std::string(400'000, 'a')), Ids(400'000 / 64, 256 + 5));
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);  // quadratic: minutes
}

// ---- tokenizer.json ----

// A byte as the byte-level alphabet writes it.
std::string byte_level(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    char32_t shifted = 256;
    for (int b = 0; b < 256; ++b) {
      const bool own = (b > 32 && b < 127) || (b > 160 && b != 173);
      if (b == static_cast<uint8_t>(byte)) append_utf8(out, own ? static_cast<char32_t>(b) : shifted);
      shifted += own ? 0 : 1;
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

// The parts of a tokenizer.json that the tests vary.
struct Parts {
  std::string added =
      R"({"id": 300, "content": "<|im_end|>", "special": true}, {"id": 301, "content": "<|semantic:0|>"})";
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": " ?\\p{L}+|\\s+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  std::string model = R"("type": "BPE", "dropout": null, "unk_token": null)";
  std::vector<std::string> extra_tokens = {"ab", "bc", "abc"};
  std::string extra_vocab = "";  // appended as it is
  std::string merges = R"("a b", ["b", "c"], "ab c")";
  std::string document = R"("truncation": null)";
};

std::string json_of(const Parts& parts) {
  std::string vocab;
  for (int i = 0; i < 256; ++i)
    vocab += in_quotes(byte_level(std::string(1, static_cast<char>(i)))) + ": " + std::to_string(i) + ",";
  for (size_t i = 0; i < parts.extra_tokens.size(); ++i)
    vocab += in_quotes(byte_level(parts.extra_tokens[i])) + ": " + std::to_string(256 + i) + ",";
  vocab += parts.extra_vocab;
  if (vocab.ends_with(',')) vocab.pop_back();
  return "{" + parts.document + ", \"added_tokens\": [" + parts.added +
         "], \"normalizer\": " + parts.normalizer + ", \"pre_tokenizer\": " + parts.pre_tokenizer +
         ", \"model\": {" + parts.model + ", \"vocab\": {" + vocab + "}, \"merges\": [" + parts.merges +
         "]}}";
}
std::unique_ptr<const Tokenizer> load(const Parts& parts) {
  return parse_tokenizer_json(json_of(parts), "t.json");
}
std::string load_error(const Parts& parts) {
  return error_of([&] { load(parts); });
}

TEST(TokenizerJson, MergesFollowTheirRankNotTheVocabulary) {
  EXPECT_EQ(encode(*load({}), "abc ab bc"), (Ids{258, ' ', 256, ' ', 257}));
  // "abc" is a token, but no merge leads to it from "ab" + "c"...
  const Parts unreachable = {.merges = R"("b c")"};
  EXPECT_EQ(encode(*load(unreachable), "abc"), (Ids{'a', 257}));
  // ... unless whole pieces are looked up first.
  Parts whole = unreachable;
  whole.model += R"(, "ignore_merges": true)";
  EXPECT_EQ(encode(*load(whole), "abc"), Ids{258});
}

TEST(TokenizerJson, TextBetweenMatchesIsAPiece) {
  // No alternative matches "1", so "ab1bc" is three pieces and "b1" cannot merge.
  const Parts parts = {.extra_tokens = {"b1"}, .merges = R"("b 1")"};
  EXPECT_EQ(encode(*load(parts), "ab1bc"), (Ids{'a', 'b', '1', 'b', 'c'}));
}

TEST(TokenizerJson, ByteLevelWithItsOwnRegex) {
  const Parts parts = {
      .pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})",
      .extra_tokens = {"  ", " a"},
      .merges = R"("Ġ Ġ", "Ġ a")"};
  EXPECT_EQ(encode(*load(parts), "a   a"), (Ids{'a', 256, 257}));
}

TEST(TokenizerJson, TextNeverGivesAnAddedTokenThatIsAlsoInTheVocabulary) {
  Parts parts = {.added = R"({"id": 259, "content": "<|im_end|>"}, {"id": 301, "content": "<|semantic:0|>"})",
                 .pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})",
                 .extra_vocab = R"("<|im_end|>": 259)"};
  parts.model += R"(, "ignore_merges": true)";
  const auto tokenizer = load(parts);
  EXPECT_EQ(encode(*tokenizer, "<|im_end|>"), Ids{259});
  EXPECT_EQ(tokenizer->encode("<|im_end|>", SpecialTokens::as_text).size(), 10u);
}

TEST(TokenizerJson, NfcBeforeSplitting) {
  const Parts parts = {.normalizer = R"({"type": "NFC"})", .extra_tokens = {"\u00E9"}, .merges = R"("Ã ©")"};
  EXPECT_EQ(encode(*load(parts), "e\u0301"), Ids{256});
}

TEST(TokenizerJson, UnknownFeaturesAreNamed) {
  const auto split = [](const std::string& fields) { return R"({"type": "Split", )" + fields + "}"; };
  const std::string regex = R"("pattern": {"Regex": "a"})";
  const std::pair<Parts, std::string> cases[] = {
      {{.normalizer = R"({"type": "NFKC"})"}, "normalizer NFKC"},
      {{.pre_tokenizer = R"({"type": "Metaspace"})"}, "pre-tokenizer Metaspace"},
      {{.pre_tokenizer = "null"}, "without pre_tokenizer"},
      {{.pre_tokenizer = split(regex + R"(, "behavior": "Removed")")}, "behavior Removed"},
      {{.pre_tokenizer = split(regex + R"(, "behavior": "Isolated", "invert": true)")}, "invert"},
      {{.pre_tokenizer = split(R"("pattern": {"String": "a"}, "behavior": "Isolated")")}, "other than Regex"},
      {{.pre_tokenizer = split(regex + R"(, "behavior": "Isolated")")}, "without ByteLevel"},
      {{.pre_tokenizer = split(R"("pattern": {"Regex": "(a"}, "behavior": "Isolated")")}, "does not compile"},
      {{.pre_tokenizer = split(R"("pattern": {"Regex": "\\w+"}, "behavior": "Isolated")")}, "uses \\w"},
      {{.pre_tokenizer = R"({"type": "ByteLevel"})"}, "add_prefix_space"},
      {{.model = R"("type": "Unigram")"}, "model Unigram"},
      {{.model = R"("dropout": 0.1)"}, "dropout"},
      {{.model = R"("end_of_word_suffix": "</w>")"}, "end_of_word_suffix"},
      {{.model = R"("byte_fallback": true)"}, "byte_fallback"},
      {{.extra_vocab = R"("你": 280)"}, "outside the byte-level alphabet"},
      {{.document = R"("truncation": {"max_length": 5})"}, "truncation"},
      {{.document = R"("post_processor": {"type": "TemplateProcessing"})"}, "TemplateProcessing"},
      {{.added = R"({"id": 300, "content": "x", "lstrip": true})"}, "lstrip"},
      {{.added = R"({"id": 300, "content": "x", "normalized": true})", .normalizer = R"({"type": "NFC"})"},
       "normalized"},
  };
  for (const auto& [parts, words] : cases) {
    const std::string error = load_error(parts);
    EXPECT_TRUE(error.starts_with("unsupported: t.json: ")) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error << " / " << words;
  }
}

TEST(TokenizerJson, ContradictionsAreNamed) {
  const std::pair<Parts, std::string> cases[] = {
      {{.extra_vocab = R"("zz": -1)"}, "has id -1"},
      {{.extra_vocab = R"("zz": 4611686018427387904)"}, "has id 4611686018427387904"},
      {{.extra_vocab = R"("zz": 0)"}, "which another token has"},
      {{.extra_vocab = R"("zz": 300)"}, "is both"},
      {{.added = R"({"id": 9999999999, "content": "x"})"}, "has id 9999999999"},
      {{.added = R"({"id": 300, "content": "x"}, {"id": 300, "content": "y"})"},
       "two special tokens have id 300"},
      {{.added = R"({"id": 300, "content": "x"}, {"id": 301, "content": "x"})"}, "occurs twice"},
      {{.merges = R"("a b", "a b")"}, "model.merges[1] occurs twice"},
      {{.merges = R"("a  b")"}, "model.merges[0]: expected"},
      {{.merges = R"("ab")"}, "model.merges[0]: expected"},
      {{.merges = R"(["a"])"}, "model.merges[0]: expected"},
      {{.merges = R"(7)"}, "model.merges[0]: expected"},
      {{.merges = R"("a c")"}, "\"ac\" is not in the vocabulary"},
      {{.merges = R"("a ")"}, "\"\" is not in the vocabulary"},
      {{.added = ""}, "\"<|semantic:0|>\" is missing"},
  };
  for (const auto& [parts, words] : cases) {
    const std::string error = load_error(parts);
    EXPECT_TRUE(error.starts_with("corrupt_file: ")) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error << " / " << words;
  }
}

TEST(TokenizerJson, EveryTruncationAndWrongKindIsATypedError) {
  const std::string file = json_of({});
  for (size_t length = 0; length < file.size(); length += 3)
    EXPECT_TRUE(error_of([&] {
                  parse_tokenizer_json(std::string_view(file).substr(0, length), "t.json");
                }).starts_with("corrupt_file: "));
  for (const char* json : {"[]", "7", "{}", R"({"model": 1})", R"({"model": {"vocab": []}})"})
    EXPECT_NE(error_of([&] { parse_tokenizer_json(json, "t.json"); }), "no error") << json;
}

TEST(TokenizerJson, ARegexFailureIsAnError) {
  Parts parts;
  parts.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  const auto tokenizer = load(parts);
  const std::string error = error_of([&] { encode(*tokenizer, std::string(60, 'a') + "b"); });
  EXPECT_TRUE(error.starts_with("too_large: text: the tokenizer's regular expression gives up")) << error;
}

}  // namespace
}  // namespace shoal::text
