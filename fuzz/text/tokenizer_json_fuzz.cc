// Arbitrary bytes as a tokenizer.json: once as they are, once as the parts of an otherwise sound one.
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace {

using shoal::text::SpecialTokens;

// Takes the bytes before the next zero byte, or `otherwise` when there are none.
std::string take_part(std::string_view& rest, std::string_view otherwise) {
  const size_t end = rest.find('\0');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return std::string(part.empty() ? otherwise : part);
}

// Vocabulary entries of the 256 single bytes in the byte-level alphabet.
std::string single_bytes() {
  std::string entries;
  char32_t shifted = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool own = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    entries += '"';
    if (byte == '"' || byte == '\\') entries += '\\';
    shoal::text::append_utf8(entries, own ? byte : shifted++);
    entries += "\": " + std::to_string(byte) + ", ";
  }
  return entries;
}

std::string document(std::string_view& rest) {
  static const std::string kSingleBytes = single_bytes();
  const std::string added =
      take_part(rest, R"({"id": 300, "content": "<|im_end|>"}, {"id": 301, "content": "<|semantic:0|>"})");
  const std::string normalizer = take_part(rest, "null");
  const std::string regex = take_part(rest, R"(" ?\\p{L}+|\\s+")");
  const std::string vocabulary = take_part(rest, R"("ab": 256)");
  const std::string merges = take_part(rest, R"("a b")");
  return R"({"added_tokens": [)" + added + R"(], "normalizer": )" + normalizer +
         R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": )" +
         regex + R"(}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
            "model": {"type": "BPE", "vocab": {)" +
         kSingleBytes + vocabulary + R"(}, "merges": [)" + merges + "]}}";
}

void load_and_encode(std::string_view json, std::string_view text) {
  try {
    const auto tokenizer = shoal::text::parse_tokenizer_json(json, "fuzz");
    for (const SpecialTokens policy : {SpecialTokens::recognise, SpecialTokens::as_text})
      tokenizer->decode(tokenizer->encode(text, policy));
  } catch (const shoal::Error& error) {
    if (error.code() == shoal::ErrorCode::internal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  load_and_encode(all, "abc <|im_end|>");
  std::string_view rest = all;
  const std::string json = document(rest);
  load_and_encode(json, rest);
  return 0;
}
