#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split_pattern.h"

#include <pcre2.h>
#include <string>

#include "base/error.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

constexpr size_t kMaxPatternBytes = 10000;
constexpr uint32_t kHeapLimitKib = 256 * 1024;  // only the interpreter uses heap
// The limit of steps of one match: a run of n blanks costs about n for the patterns of real tokenizers.
constexpr uint32_t kMinMatchLimit = 10'000'000;

// PCRE2's \s is not quite White_Space: it also takes U+180E. Escapes whose meaning differs between PCRE2 and
// the libraries of the reference (\w, \h, \b, ...) are refused.
std::string with_unicode_white_space(std::string_view pattern, std::string_view file) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    const bool is_word = (escaped >= '0' && escaped <= '9') || (escaped >= 'A' && escaped <= 'Z') ||
                         (escaped >= 'a' && escaped <= 'z');
    if (escaped == 's') {
      out += "\\p{White_Space}";
    } else if (escaped == 'S') {
      out += "\\P{White_Space}";
    } else if (is_word && std::string_view("pPdDrnt").find(escaped) == std::string_view::npos) {
      fail(ErrorCode::unsupported, file, ": regular expression uses \\", std::string_view(&escaped, 1));
    } else {
      out += '\\';
      out += escaped;
    }
  }
  return out;
}

struct MatchState {
  explicit MatchState(size_t text_bytes)
      : data(pcre2_match_data_create_8(1, nullptr)), limits(pcre2_match_context_create_8(nullptr)) {
    if (!data || !limits) {
      release();
      fail(ErrorCode::resource_exhausted, "text: no memory for a regular-expression match");
    }
    const size_t limit = kMinMatchLimit + 16 * text_bytes;
    pcre2_set_match_limit_8(limits, static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));
    pcre2_set_heap_limit_8(limits, kHeapLimitKib);
  }
  ~MatchState() { release(); }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
  void release() {
    pcre2_match_data_free_8(data);
    pcre2_match_context_free_8(limits);
  }

  pcre2_match_data_8* data;
  pcre2_match_context_8* limits;
};

// True and the bounds in the state's offset vector, or false when nothing matches at or after `from`.
bool find_match(const pcre2_code_8* code, std::string_view text, size_t from, const MatchState& state) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
  int rc = pcre2_match_8(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, state.data, state.limits);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
    rc = pcre2_match_8(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state.data,
                       state.limits);
  if (rc >= 0) return true;  // 0: matched, with more groups than the one pair we keep
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc == PCRE2_ERROR_NOMEMORY) fail(ErrorCode::resource_exhausted, "text: no memory to match it");
  if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT)
    fail(ErrorCode::too_large, "text: the tokenizer's regular expression gives up at byte ", from);
  fail(ErrorCode::internal, "regular expression: PCRE2 error ", rc, " at byte ", from);
}

}  // namespace

void SplitPattern::Release::operator()(pcre2_real_code_8* code) const { pcre2_code_free_8(code); }

SplitPattern::SplitPattern(std::string_view pattern, std::string_view file) {
  if (pattern.size() > kMaxPatternBytes)
    fail(ErrorCode::unsupported, file, ": regular expression of ", pattern.size(), " bytes, at most ",
         kMaxPatternBytes, " are accepted");
  const std::string own = with_unicode_white_space(pattern, file);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(own.data()), own.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
  if (!code_) {
    PCRE2_UCHAR8 message[256] = {};
    pcre2_get_error_message_8(error, message, sizeof message);
    fail(ErrorCode::unsupported, file,
         ": regular expression does not compile: ", reinterpret_cast<const char*>(message), " (near byte ",
         offset, ")");
  }
  pcre2_jit_compile_8(code_.get(), PCRE2_JIT_COMPLETE);  // refused under hardened kernels: interpreted then
}

void SplitPattern::split(std::string_view text, FunctionRef<void(std::string_view)> piece) const {
  if (text.empty()) return;
  const MatchState state(text.size());
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer_8(state.data);
  size_t done = 0, from = 0;
  while (from < text.size() && find_match(code_.get(), text, from, state)) {
    const size_t begin = bounds[0], end = bounds[1];
    if (end <= begin) {  // an empty match cuts nothing
      from = std::max(begin, from);
      if (from < text.size()) from += character_bytes(text[from]);
      continue;
    }
    if (begin > done) piece(text.substr(done, begin - done));
    piece(text.substr(begin, end - begin));
    done = from = end;
  }
  if (done < text.size()) piece(text.substr(done));
}

}  // namespace shoal::text
