#include "cli/integer_option.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/printable.h"
#include "cli/option_name.h"

namespace shoal::cli {

int64_t parse_integer(std::string_view name, const std::string& text, IntegerRange range) {
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  const bool whole = !text.empty() && !std::isspace(static_cast<unsigned char>(text[0])) &&
                     end == text.c_str() + text.size();
  if (!whole || errno == ERANGE || value < range.low || value > range.high)
    fail(ErrorCode::invalid_argument, name, ": expected a whole number, ", range.low, " to ", range.high,
         ", got \"", printable(text), "\"");
  return value;
}

CLI::Option* add_integer(CLI::App& command, const std::string& flag, IntegerRange range,
                         std::function<void(int64_t)> set, const std::string& help) {
  const auto take = [name = option_name(flag), range, set = std::move(set)](const std::string& text) {
    set(parse_integer(name, text, range));
  };
  return command.add_option_function<std::string>(flag, take, help)->type_name("INT");
}

CLI::Option* add_integers(CLI::App& command, const std::string& flag, IntegerRange range,
                          std::vector<int>& into, const std::string& help) {
  const auto take = [name = option_name(flag), range, &into](const std::vector<std::string>& texts) {
    into.clear();
    for (const std::string& text : texts) into.push_back(static_cast<int>(parse_integer(name, text, range)));
  };
  return command.add_option_function<std::vector<std::string>>(flag, take, help)
      ->delimiter(',')
      ->type_name("INT,...");
}

}  // namespace shoal::cli
