// application/x-www-form-urlencoded (URL Standard, 5.1): what forms of text send.
#include <algorithm>

#include "base/percent.h"
#include "server/body/form_fields.h"
#include "server/body/place.h"

namespace shoal::server {
namespace {

std::string form_text(std::string_view part) {
  std::optional<std::string> text = percent_decoded(part, true);
  if (!text) fail_in(Place{}, "not a form: it has a broken %-escape or a NUL");
  return std::move(*text);
}

}  // namespace

Value read_urlencoded(std::string_view body) {
  Value::Object form;
  while (!body.empty()) {
    const size_t end = std::min(body.find('&'), body.size());
    const std::string_view pair = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    add_form_field(form, form_text(pair.substr(0, equals)),
                   Value{form_text(pair.substr(std::min(equals + 1, pair.size())))});
  }
  return nested_form(std::move(form));
}

}  // namespace shoal::server
