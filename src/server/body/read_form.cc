// multipart/form-data: RFC 7578, with the delimiters of RFC 2046 5.1. Stricter where two readers could
// disagree about the content: only a line break may come before the first delimiter or after the last.
#include <algorithm>

#include "base/printable.h"
#include "server/body/form_fields.h"
#include "server/body/media_type.h"
#include "server/body/place.h"

namespace shoal::server {
namespace {

constexpr size_t kMaxBoundary = 70;        // RFC 2046 5.1.1
constexpr size_t kMaxHeadBytes = 8 << 10;  // of one part

bool is_boundary(std::string_view boundary) {
  const auto allowed = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return alphanumeric || (c != '\0' && std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos);
  };
  return !boundary.empty() && boundary.size() <= kMaxBoundary && std::ranges::all_of(boundary, allowed) &&
         !boundary.ends_with(' ');
}

// The content of a part's head.
struct PartHead {
  std::string name;
  bool is_file = false;
};

class FormReader {
 public:
  FormReader(std::string_view body, std::string_view boundary)
      : rest_(body), delimiter_(concat("\r\n--", boundary)) {}

  Value read() {
    take("\r\n");  // of the first delimiter, whose line may also begin the body
    if (!take(std::string_view(delimiter_).substr(2))) fail_form("expected the boundary at the start");
    Value::Object form;
    while (!at_last_delimiter()) {
      PartHead head = read_head();
      const size_t end = rest_.find(delimiter_);
      if (end == std::string_view::npos)
        fail_in(Place{}.member(head.name), "expected the boundary after the part, found the end of the form");
      std::string content(rest_.substr(0, end));
      rest_.remove_prefix(end + delimiter_.size());
      Value value = head.is_file ? Value{Bytes{std::move(content)}} : Value{std::move(content)};
      add_form_field(form, std::move(head.name), std::move(value));
    }
    return nested_form(std::move(form));
  }

 private:
  template <typename... Parts>
  [[noreturn]] static void fail_form(const Parts&... parts) {
    fail_in(Place{}, "not a form: ", parts...);
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // After the boundary: either the end, or the end of its line.
  bool at_last_delimiter() {
    const bool last = take("--");
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    const bool line_ends = take("\r\n");
    if (last && !rest_.empty()) fail_form("expected the end after its last boundary");
    if (!last && !line_ends) fail_form("expected a line break after the boundary");
    return last;
  }

  // One line of the head, without its end.
  std::string_view take_line(size_t& budget) {
    const std::string_view window = rest_.substr(0, budget);
    const size_t end = window.find("\r\n");
    if (end == std::string_view::npos)
      fail_form("expected parts with at most ", kMaxHeadBytes,
                " bytes of header and an empty line behind it");
    rest_.remove_prefix(end + 2);
    budget -= end + 2;
    return window.substr(0, end);
  }

  PartHead read_head() {
    size_t budget = kMaxHeadBytes;
    std::optional<PartHead> head;
    while (true) {
      const std::string_view line = take_line(budget);
      if (line.empty()) break;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos || line.find_first_of(" \t") < colon)
        fail_form("expected \"Name: value\" in the head of a part, found \"", printable(line, 40), "\"");
      const std::string name = to_lower(line.substr(0, colon));
      const std::string_view value = trimmed(line.substr(colon + 1));
      if (name == "content-disposition") {
        if (head) fail_form("expected one Content-Disposition in a part, found two");
        head = read_disposition(value);
      } else {
        check_header(name, value);
      }
    }
    if (!head) fail_form("expected a Content-Disposition in each part, found one without");
    return std::move(*head);
  }

  static PartHead read_disposition(std::string_view value) {
    const auto disposition = parse_media_type(value);
    const std::string* name = disposition ? disposition->find("name") : nullptr;
    if (!name || disposition->value != "form-data")
      fail_form("expected Content-Disposition: form-data; name=\"...\", found \"", printable(value, 40),
                "\"");
    return {.name = *name, .is_file = disposition->find("filename") || disposition->find("filename*")};
  }

  static void check_header(std::string_view name, std::string_view value) {
    if (name == "content-transfer-encoding") {
      const std::string encoding = to_lower(value);
      if (encoding != "binary" && encoding != "8bit" && encoding != "7bit")
        fail_form("expected parts as they are, found the transfer encoding \"", printable(value, 40), "\"");
    } else if (name == "content-type") {
      const auto type = parse_media_type(value);
      if (!type || !type->is_utf8())
        fail_form("expected parts in UTF-8, found the type \"", printable(value, 40), "\"");
    }
  }

  std::string_view rest_;
  std::string delimiter_;
};

}  // namespace

Value read_form(std::string_view body, std::string_view boundary) {
  if (!is_boundary(boundary)) {
    throw BodyError(ErrorCode::invalid_argument, "",
                    concat("expected a boundary of 1 to ", kMaxBoundary,
                           " characters in Content-Type, found \"", printable(boundary, 80), "\""));
  }
  return FormReader(body, boundary).read();
}

}  // namespace shoal::server
