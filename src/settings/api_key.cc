#include "settings/api_key.h"

#include <algorithm>

namespace shoal::settings {

bool is_key(std::string_view text) {
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  return !text.empty() && text.size() <= kMostKeyBytes && std::ranges::all_of(text, visible);
}

}  // namespace shoal::settings
