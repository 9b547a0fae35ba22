#include "fleet/log_lines.h"

#include <algorithm>
#include <utility>

namespace shoal::fleet {

std::string named_line(std::string_view name, std::string_view line) {
  const bool is_object = line.starts_with("{\"") && line.ends_with('}');
  std::string named = is_object ? "{\"worker\":\"" : "";
  named.append(name).append(is_object ? "\"," : " | ").append(line.substr(is_object ? 1 : 0));
  return named;
}

std::vector<std::string> LogLines::add(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t count = std::min({end, bytes.size(), kLongest - begun_.size()});
    begun_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    const bool ends = !bytes.empty() && bytes.front() == '\n';
    if (ends) bytes.remove_prefix(1);
    if (ends || begun_.size() == kLongest) take(lines);
  }
  return lines;
}

std::vector<std::string> LogLines::finish() {
  std::vector<std::string> lines;
  if (!begun_.empty()) take(lines);
  return lines;
}

void LogLines::take(std::vector<std::string>& lines) {
  last_ = begun_;
  lines.push_back(std::exchange(begun_, {}));
}

}  // namespace shoal::fleet
