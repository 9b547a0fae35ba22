#include "runtime/engine/request_text.h"

#include "base/error.h"
#include "shoal/model.h"
#include "text/characters.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::runtime {

void validate_text(const std::string& text) {
  if (text.size() > static_cast<size_t>(kMaxTextBytes))
    fail(ErrorCode::too_large, "text: ", text.size(), " bytes, at most ", kMaxTextBytes, " are accepted");
  text::require_utf8(text);
  if (text::strip_white_space(text).empty())
    fail(ErrorCode::invalid_argument, "text: expected something to say, got ",
         text.empty() ? "nothing" : "only white space");
}

bool has_nothing_to_say(const SpeechRequest& request) {
  return request.phonemes.empty() && !text::is_speakable(request.text);
}

}  // namespace shoal::runtime
