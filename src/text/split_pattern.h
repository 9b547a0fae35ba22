// The regular expression by which a tokenizer cuts text into pieces before byte-pair merging.
#pragma once

#include <memory>
#include <string_view>

#include "base/function_ref.h"

struct pcre2_real_code_8;

namespace shoal::text {

// Compiled once, with JIT where the system allows it (same results without, several times slower).
// Immutable: split() may be called from any thread.
class SplitPattern {
 public:
  // `\s` means Unicode White_Space, as in the regular-expression libraries of the reference tokenizers.
  // Throws Error(unsupported), naming `file`, for a pattern that PCRE2 does not compile or whose escapes
  // could mean something else there.
  SplitPattern(std::string_view pattern, std::string_view file);

  // Calls piece() for every match and every stretch between matches, in order: the joined pieces are the
  // text. `text` must be well-formed UTF-8. Throws Error(too_large) when a match needs more steps or memory
  // than the limits allow; a limit never changes the pieces.
  void split(std::string_view text, FunctionRef<void(std::string_view piece)> piece) const;

 private:
  struct Release {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, Release> code_;
};

}  // namespace shoal::text
