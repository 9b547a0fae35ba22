#include "server/body/place.h"

#include <algorithm>
#include <vector>

#include "base/printable.h"

namespace shoal::server {
namespace {

constexpr size_t kMaxNameCharacters = 40;

}  // namespace

std::string item_path(const std::string& where, size_t index) { return concat(where, "[", index, "]"); }

std::string member_path(const std::string& where, std::string_view name) {
  return concat(where, where.empty() ? "" : ".", printable(name, kMaxNameCharacters));
}

std::string path_of(const Place& place) {
  if (!place.parent) return "";
  const std::string around = path_of(*place.parent);
  return place.in_array ? item_path(around, place.index) : member_path(around, place.name);
}

void TreeLimits::count_value(const Place& place) {
  if (++values_ > kMaxValues)
    fail_in(place, "expected at most ", kMaxValues, " values in a body, found more");
}

void TreeLimits::check_depth(const Place& place) {
  if (place.depth >= kMaxDepth)
    fail_in(place, "expected at most ", kMaxDepth, " levels of nesting, found more");
}

void TreeLimits::check_names(const Value::Object& object, const Place& place) {
  if (object.size() < 2) return;
  std::vector<std::string_view> names;
  names.reserve(object.size());
  for (const auto& [name, value] : object) names.push_back(name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) fail_in(place.member(*twice), "expected once, found again");
}

}  // namespace shoal::server
