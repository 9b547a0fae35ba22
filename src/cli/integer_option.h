// Whole numbers as options: one that does not fit is an error, never another number.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shoal::cli {

struct IntegerRange {
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
};

// `text` as a whole number, written as in C (12, 0x0c). Throws Error(invalid_argument) that begins with
// `name` and says the range: not a whole number, or one outside it.
int64_t parse_integer(std::string_view name, const std::string& text, IntegerRange range);

// As CLI::App::add_option. Errors name the option as settings are named: max_new_tokens for --max-new-tokens.
CLI::Option* add_integer(CLI::App& command, const std::string& flag, IntegerRange range,
                         std::function<void(int64_t)> set, const std::string& help);
// A list with commas between.
CLI::Option* add_integers(CLI::App& command, const std::string& flag, IntegerRange range,
                          std::vector<int>& into, const std::string& help);

// What add_integer calls: `into` is an integer, or an optional one, that holds the whole range.
template <typename Into>
std::function<void(int64_t)> store_in(Into& into) {
  return [&into](int64_t value) {
    if constexpr (std::is_integral_v<Into>)
      into = static_cast<Into>(value);
    else
      into = static_cast<typename Into::value_type>(value);
  };
}

}  // namespace shoal::cli
