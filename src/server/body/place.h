// The path of a value in a tree, for messages; and the limits that every reader of a tree enforces.
#pragma once

#include <string>
#include <string_view>

#include "server/body/value.h"

namespace shoal::server {

// "references[1]", "references[1].audio". Names are foreign: they are shortened and made printable.
std::string item_path(const std::string& where, size_t index);
std::string member_path(const std::string& where, std::string_view name);

// A value on the way down from the root, kept on the stack of a reader's recursion: text is made of it only
// for an error. The root has no parent.
struct Place {
  const Place* parent = nullptr;
  bool in_array = false;
  size_t index = 0;            // in an array
  std::string_view name = {};  // in an object
  int depth = 0;               // containers around it

  Place item(size_t at) const { return {.parent = this, .in_array = true, .index = at, .depth = depth + 1}; }
  Place member(std::string_view key) const { return {.parent = this, .name = key, .depth = depth + 1}; }
};

std::string path_of(const Place& place);

template <typename... Parts>
[[noreturn]] void fail_in(const Place& place, const Parts&... parts) {
  throw BodyError(ErrorCode::invalid_argument, path_of(place), concat(parts...));
}

// Counts the values that a reader creates. Each call throws BodyError(invalid_argument) beyond the limit.
class TreeLimits {
 public:
  void count_value(const Place& place);
  // An array or object begins at `place`.
  static void check_depth(const Place& place);
  static void check_names(const Value::Object& object, const Place& place);  // that they are unique

 private:
  int64_t values_ = 0;
};

}  // namespace shoal::server
