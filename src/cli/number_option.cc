#include "cli/number_option.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "cli/nearest.h"
#include "cli/option_name.h"

namespace shoal::cli {
namespace {

// "1,5" -> 1.5: how half of the world writes it.
bool has_decimal_comma(const std::string& text) {
  return std::ranges::count(text, ',') == 1 && text.find_first_not_of("0123456789,-+") == std::string::npos;
}

std::string expected(NumberRange range) {
  if (std::isinf(range.low) && std::isinf(range.high)) return "expected a number, such as 1.5";
  return concat("expected a number, ", range.low, " to ", range.high);
}

// "auto, on or off"
std::string listed(const std::vector<std::string>& choices) {
  std::string list;
  for (size_t i = 0; i < choices.size(); ++i)
    list += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return list;
}

}  // namespace

double parse_number(std::string_view name, const std::string& text, NumberRange range) {
  double value = 0;
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");
  const char* const begin = text.data() + (has_plus ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && stop == end && value >= range.low && value <= range.high) return value;
  fail(ErrorCode::invalid_argument, name, ": ", expected(range), ", got \"", printable(text), "\"",
       has_decimal_comma(text) ? "; the decimal sign is a point" : "");
}

CLI::Option* add_number(CLI::App& command, const std::string& flag, NumberRange range,
                        std::function<void(double)> set, const std::string& help) {
  const auto take = [name = option_name(flag), range, set = std::move(set)](const std::string& text) {
    set(parse_number(name, text, range));
  };
  return command.add_option_function<std::string>(flag, take, help)->type_name("X");
}

CLI::Option* add_numbers(CLI::App& command, const std::string& flag, std::vector<double>& into,
                         const std::string& help) {
  const auto take = [name = option_name(flag), &into](const std::vector<std::string>& texts) {
    into.clear();
    for (const std::string& text : texts) into.push_back(parse_number(name, text));
  };
  return command.add_option_function<std::vector<std::string>>(flag, take, help)
      ->delimiter(',')
      ->type_name("X,...");
}

CLI::Validator one_of(std::vector<std::string> choices) {
  std::string description = "{";
  for (const std::string& choice : choices) description += (description.size() > 1 ? "," : "") + choice;
  const auto check = [choices = std::move(choices)](const std::string& value) {
    if (std::ranges::count(choices, value) > 0) return std::string();
    return concat("expected ", listed(choices), ", got \"", printable(value), "\"",
                  did_you_mean(value, choices));
  };
  return CLI::Validator(check, description + "}");
}

}  // namespace shoal::cli
