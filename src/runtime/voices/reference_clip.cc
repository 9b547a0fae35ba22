#include "runtime/voices/reference_clip.h"

#include "base/error.h"
#include "text/utf8.h"

namespace shoal::runtime {

void check_transcript(std::string_view text, std::string_view name, const ReferenceLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_transcript_bytes) {
    fail(ErrorCode::too_large, name, ": its transcript has ", text.size(), " bytes, at most ",
         limits.max_transcript_bytes, " are accepted");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail(ErrorCode::invalid_argument, name,
         ": its transcript is empty; give the words that are spoken in it");
  }
  if (const size_t at = text::find_invalid_utf8(text); at != std::string_view::npos)
    fail(ErrorCode::invalid_argument, name, ": its transcript is not valid UTF-8 (byte ", at, ")");
}

void check_sound(const audio::Clip& clip, std::string_view name, const ReferenceLimits& limits) {
  if (clip.seconds() > limits.max_seconds) {
    fail(ErrorCode::too_large, name, ": lasts ", clip.seconds(), " s, at most ", limits.max_seconds,
         " s are accepted");
  }
  if (clip.seconds() < limits.min_seconds) {
    fail(ErrorCode::invalid_argument, name, ": lasts ", clip.seconds(), " s, at least ", limits.min_seconds,
         " s are needed");
  }
  if (audio::is_silent(clip.samples)) fail(ErrorCode::invalid_argument, name, ": is silence");
}

void check_reference(const audio::Clip& clip, std::string_view text, std::string_view name,
                     const ReferenceLimits& limits) {
  check_transcript(text, name, limits);
  check_sound(clip, name, limits);
}

}  // namespace shoal::runtime
