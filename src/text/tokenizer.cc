#include "text/tokenizer.h"

#include "base/file.h"
#include "text/tiktoken.h"
#include "text/tokenizer_json.h"

namespace shoal::text {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;  // the largest published ones have about 11 MB

}  // namespace

std::unique_ptr<const Tokenizer> load_tokenizer(const std::string& tokenizer_path,
                                                const std::string& special_tokens_path) {
  const std::string file = read_file(tokenizer_path, kMaxFileBytes);
  const std::string_view name = file_name(tokenizer_path);
  if (tokenizer_path.ends_with(".json")) return parse_tokenizer_json(file, name);
  if (special_tokens_path.empty()) return parse_tiktoken(file, name, std::nullopt, "built-in special tokens");
  return parse_tiktoken(file, name, read_file(special_tokens_path, kMaxFileBytes),
                        file_name(special_tokens_path));
}

}  // namespace shoal::text
