// Numbers and words as options: what does not fit is an error that says what was expected.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace shoal::cli {

struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

// `text` as a decimal number ("1.5", "2e-3"). Throws Error(invalid_argument) that begins with `name`: not a
// number, or one outside the range.
double parse_number(std::string_view name, const std::string& text, NumberRange range = {});

// As add_integer.
CLI::Option* add_number(CLI::App& command, const std::string& flag, NumberRange range,
                        std::function<void(double)> set, const std::string& help);
// A list with commas between.
CLI::Option* add_numbers(CLI::App& command, const std::string& flag, std::vector<double>& into,
                         const std::string& help);

// What add_number calls: `into` is a floating-point number, or an optional one.
template <typename Into>
std::function<void(double)> store_number_in(Into& into) {
  return [&into](double value) {
    if constexpr (std::is_floating_point_v<Into>)
      into = static_cast<Into>(value);
    else
      into = static_cast<typename Into::value_type>(value);
  };
}

// A check of an option: its value is one of `choices`, which completion offers.
CLI::Validator one_of(std::vector<std::string> choices);

}  // namespace shoal::cli
