#include "text/nfc.h"

#include <algorithm>
#include <tuple>
#include <utf8proc.h>
#include <vector>

#include "base/error.h"
#include "text/utf8.h"

namespace shoal::text {
namespace {

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Full canonical decomposition, combining marks not yet in order.
std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    utf8proc_int32_t parts[32];  // the longest canonical decomposition has 4 code points
    int boundary = 0;
    const auto c = static_cast<utf8proc_int32_t>(code_point_at(text, at));
    const auto count = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    CHECK(count >= 0 && count <= 32, "U+", std::hex, c);
    out.insert(out.end(), parts, parts + count);
  }
  return out;
}

// utf8proc orders combining marks by exchanging neighbours, which is quadratic: a megabyte of alternating
// accents would take minutes. Sorting every run by class, equal ones by position, gives the same order.
void order_combining_marks(std::vector<utf8proc_int32_t>& characters) {
  struct Mark {
    int combining_class;
    size_t position;
    utf8proc_int32_t character;
  };
  std::vector<Mark> run;
  for (size_t at = 0; at < characters.size();) {
    run.clear();
    size_t end = at;
    for (int mark; end < characters.size() && (mark = combining_class(characters[end])) != 0; ++end)
      run.push_back({mark, end, characters[end]});
    std::sort(run.begin(), run.end(), [](const Mark& a, const Mark& b) {
      return std::tie(a.combining_class, a.position) < std::tie(b.combining_class, b.position);
    });
    for (const Mark& mark : run) characters[at++] = mark.character;
    if (at < characters.size()) ++at;  // the starter after the run
  }
}

}  // namespace

std::string to_nfc(std::string_view text) {
  const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);

  std::vector<utf8proc_int32_t> characters = decompose(text);
  order_combining_marks(characters);
  const auto count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  CHECK(count >= 0, utf8proc_errmsg(count));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<char32_t>(characters[static_cast<size_t>(i)]));
  return out;
}

}  // namespace shoal::text
