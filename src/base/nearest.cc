#include "base/nearest.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace shoal {
namespace {

// Longer than every name: characters beyond cannot make a name closer, only the search slower.
constexpr size_t kMaxLength = 64;

std::string_view core(std::string_view name, std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes)
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return name.substr(0, kMaxLength);
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> int& { return table[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int>(i + j);
        continue;
      }
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::string_view nearest_name(std::string_view wanted, std::span<const std::string> names,
                              std::span<const std::string_view> prefixes) {
  CHECK(!names.empty(), "no names to choose from");
  int best = std::numeric_limits<int>::max();
  std::string_view nearest;
  for (const std::string& name : names) {
    const int distance = edit_distance(core(wanted, prefixes), core(name, prefixes));
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace shoal
