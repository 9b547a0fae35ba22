#include "server/routes/route_pattern.h"

namespace shoal::server {

std::optional<std::string_view> match_path(std::string_view pattern, std::string_view path) {
  const size_t open = pattern.find('{');
  if (open == std::string_view::npos)
    return pattern == path ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view after = pattern.substr(pattern.find('}', open) + 1);
  if (path.size() <= open + after.size() || path.substr(0, open) != pattern.substr(0, open) ||
      !path.ends_with(after))
    return std::nullopt;
  const std::string_view name = path.substr(open, path.size() - open - after.size());
  if (!after.empty() && name.find('/') != std::string_view::npos) return std::nullopt;
  return name;
}

}  // namespace shoal::server
