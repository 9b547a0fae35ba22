#include "text/tokenizer.h"

#include "base/file.h"
#include "text/tiktoken.h"
#include "text/tokenizer_json.h"

namespace shoal::text {
namespace {

// The largest published ones: 11 MB, 2.6 MB, 0.2 MB.
constexpr int64_t kMaxTokenizerJsonBytes = int64_t{24} << 20;
constexpr int64_t kMaxTiktokenBytes = int64_t{8} << 20;
constexpr int64_t kMaxSpecialTokensBytes = int64_t{2} << 20;

}  // namespace

std::unique_ptr<const Tokenizer> load_tokenizer(const std::string& tokenizer_path,
                                                const std::string& special_tokens_path) {
  const bool is_json = tokenizer_path.ends_with(".json");
  const std::string file = read_file(tokenizer_path, is_json ? kMaxTokenizerJsonBytes : kMaxTiktokenBytes);
  const std::string_view name = file_name(tokenizer_path);
  if (is_json) return parse_tokenizer_json(file, name);
  if (special_tokens_path.empty()) return parse_tiktoken(file, name, std::nullopt, "built-in special tokens");
  return parse_tiktoken(file, name, read_file(special_tokens_path, kMaxSpecialTokensBytes),
                        file_name(special_tokens_path));
}

}  // namespace shoal::text
