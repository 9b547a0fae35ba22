// Arbitrary bytes as tokenizer.tiktoken, special_tokens.json and a text for them, a zero byte between.
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "text/tiktoken.h"
#include "text/utf8.h"

namespace {

// Takes the bytes before the next zero byte.
std::string_view take_part(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

// The 256 tokens of single bytes, without which no vocabulary is accepted.
std::string single_bytes() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string lines;
  for (unsigned byte = 0; byte < 256; ++byte) {
    lines += kDigits[byte >> 2];
    lines += kDigits[(byte & 3) << 4];
    lines += "== " + std::to_string(byte) + "\n";
  }
  return lines;
}

void load_and_encode(std::string_view ranks, std::string_view specials, std::string_view text) {
  using shoal::text::SpecialTokens;
  const auto tokenizer = shoal::text::parse_tiktoken(ranks, "ranks", specials, "specials");
  for (const SpecialTokens policy : {SpecialTokens::recognise, SpecialTokens::as_text}) {
    if (tokenizer->decode(tokenizer->encode(text, policy)) != text) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string kSingleBytes = single_bytes();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view ranks = take_part(rest), specials = take_part(rest);
  for (const std::string& file : {std::string(ranks), kSingleBytes + std::string(ranks)}) {
    for (const std::string_view list :
         {specials, std::string_view(R"({"<|im_end|>": 0, "<|semantic:0|>": 0})")}) {
      try {
        load_and_encode(file, list, rest);
      } catch (const shoal::Error& error) {
        if (error.code() == shoal::ErrorCode::internal) std::abort();
      }
    }
  }
  return 0;
}
