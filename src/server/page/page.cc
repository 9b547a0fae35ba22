#include "server/page/page.h"

#include <algorithm>

namespace shoal::server {

const Asset* find_asset(std::string_view path) {
  const auto all = assets();
  const auto found = std::ranges::find(all, path, &Asset::path);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace shoal::server
