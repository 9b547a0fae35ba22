#include <CLI/CLI.hpp>

#include "cli/completion.h"

namespace shoal::cli {
namespace {

// CLI11 names the values of CLI::IsMember in the type: "TEXT:{auto,on,off}".
std::vector<std::string> choices_of(const std::string& type) {
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

CommandWords::Option option_words(const CLI::Option& option) {
  CommandWords::Option words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  words.description = option.get_description();
  words.takes_value = option.get_items_expected_max() > 0;
  if (words.takes_value) words.choices = choices_of(option.get_type_name());
  return words;
}

// Both hide what is in a group without a name.
bool is_hidden(const std::string& group) { return group.empty(); }

void add_words(const CLI::App& app, const std::string& path, std::vector<CommandWords>& all) {
  CommandWords words{.path = path, .subcommands = {}, .options = {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && !is_hidden(option->get_group()))
      words.options.push_back(option_words(*option));
  const auto shown = [](const CLI::App* below) {
    return !below->get_name().empty() && !is_hidden(below->get_group());
  };
  const std::vector<const CLI::App*> below = app.get_subcommands(shown);
  for (const CLI::App* command : below)
    words.subcommands.push_back({command->get_name(), command->get_description()});
  all.push_back(std::move(words));
  for (const CLI::App* command : below)
    add_words(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), all);
}

}  // namespace

std::vector<CommandWords> command_words(const CLI::App& app) {
  std::vector<CommandWords> all;
  add_words(app, "", all);
  return all;
}

}  // namespace shoal::cli
