#include "cli/mistakes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "cli/completion.h"
#include "cli/familiar_words.h"
#include "cli/nearest.h"

namespace shoal::cli {
namespace {

constexpr size_t kShownCharacters = 60;

// An argument that no option or command took.
struct Stray {
  const CLI::App& app;  // that should have
  std::string word;
};

std::optional<Stray> first_stray(const CLI::App& app) {
  const std::vector<std::string> own = app.remaining();
  if (!own.empty() && !app.get_allow_extras()) return Stray{app, own.front()};
  for (const CLI::App* chosen : app.get_subcommands())
    if (auto stray = first_stray(*chosen)) return stray;
  return std::nullopt;
}

const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

const CLI::App& outermost(const CLI::App& app) {
  return app.get_parent() ? outermost(*app.get_parent()) : app;
}

// "shoal voices add"
std::string path_of(const CLI::App& app) {
  return app.get_parent() ? path_of(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

// The words of `app` itself come first.
std::vector<std::string> option_names(const CommandWords& words) {
  std::vector<std::string> names;
  for (const CommandWords::Option& option : words.options)
    for (const std::string& name : option.names)
      if (name.starts_with("--")) names.push_back(name);
  return names;
}

std::vector<std::string> command_names(const CommandWords& words) {
  std::vector<std::string> names;
  for (const CommandWords::Subcommand& command : words.subcommands) names.push_back(command.name);
  return names;
}

bool takes_text(const CLI::App& app) { return app.get_option_no_throw("text") != nullptr; }

// A sentence that begins with a dash is taken for options.
bool is_like_text(const std::string& word) { return word.find(' ') != std::string::npos; }

// The first command that has the option, as "shoal serve"; empty: none has.
std::string owner_of(const std::string& option, const CLI::App& root) {
  for (const CommandWords& words : command_words(root))
    if (std::ranges::count(option_names(words), option) > 0)
      return words.path.empty() ? root.get_name() : root.get_name() + " " + words.path;
  return "";
}

std::string answer_to_option(const CLI::App& app, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  const std::string command = path_of(app);
  if (takes_text(app) && is_like_text(word))
    return concat("a text that begins with - comes after --, as in: ", command, " -- ",
                  quoted_for_shell(word));
  const std::string unknown = concat("unknown option ", printable(option, kShownCharacters));
  if (const std::string_view words = familiar_option(command, option); !words.empty())
    return concat(unknown, "; ", words);
  const std::vector<std::string> own = option_names(command_words(app).front());
  // "-model": one dash where two are meant.
  const bool lacks_dash = option.size() > 2 && option[1] != '-';
  const std::string meant = did_you_mean(lacks_dash ? "-" + option : option, own);
  if (!meant.empty()) return unknown + meant;
  const std::string owner = owner_of(option, outermost(app));
  if (owner.empty()) return unknown;
  if (!app.get_parent()) return concat(unknown, "; it comes after the command, as in: ", owner, " ", option);
  return concat(unknown, "; `", owner, "` has it, `", command, "` does not");
}

std::string answer_to_word(const CLI::App& app, const std::string& word) {
  const std::string command = path_of(app);
  const std::vector<std::string> commands = command_names(command_words(app).front());
  if (commands.empty()) {
    const bool is_model = word.find('/') != std::string::npos && app.get_option_no_throw("--model");
    return concat(
        "unexpected argument ", quoted_for_shell(word),
        is_model ? "; a model's folder is given with --model" : "; words that belong together need quotes");
  }
  const std::string unknown = concat("unknown command ", quoted_for_shell(word));
  if (const std::string_view words = familiar_command(command, word); !words.empty())
    return concat(unknown, "; did you mean `", words, "`?");
  if (const std::string near = nearest_name(word, commands); !near.empty())
    return concat(unknown, "; did you mean `", command, " ", near, "`?");
  if (app.get_parent()) return unknown;
  return concat(unknown, "; to speak it: ", command, " say ", quoted_for_shell(word));
}

// "--voice: 1 required TEXT missing", "--voice: At Most 1 required but received 2"
std::string answer_to_count(const std::string& words) {
  const std::string name = words.substr(0, words.find(':'));
  const bool is_missing = words.ends_with(" missing");
  return concat(name, is_missing ? ": expected a value after it" : ": expected once, got several times");
}

std::string answer_without_help(const CLI::ParseError& error, const CLI::App& app) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return answer_to_count(error.what());
  if (dynamic_cast<const CLI::ExcludesError*>(&error)) {
    const std::string words = error.what();  // "--listen excludes --port"
    return concat(words.substr(0, words.find(' ')), " and ", words.substr(words.rfind(' ') + 1),
                  ": expected one of them");
  }
  const bool no_command = app.get_require_subcommand_min() > 0 && app.get_subcommands().empty();
  if (no_command) return concat("expected a command, as in: ", path_of(app), " say \"Hello there.\"");
  return error.what();
}

}  // namespace

std::vector<std::string> understood_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) return arguments;
  const auto as_option = [&](const char* option) {
    arguments.erase(arguments.begin());
    arguments.emplace_back(option);
  };
  if (arguments.front() == "help") as_option("--help");
  if (arguments == std::vector<std::string>{"version"}) as_option("--version");
  return arguments;
}

std::string answer_to(const CLI::ParseError& error, const CLI::App& app) {
  const std::optional<Stray> stray = first_stray(app);
  const CLI::App& asked = stray ? stray->app : innermost(app);
  std::string answer;
  if (!stray)
    answer = answer_without_help(error, app);
  else if (stray->word.size() > 1 && stray->word[0] == '-')
    answer = answer_to_option(asked, stray->word);
  else
    answer = answer_to_word(asked, stray->word);
  return concat(answer, " (see `", path_of(asked), " --help`)");
}

std::string quoted_for_shell(const std::string& word) {
  const std::string shown = printable(word, kShownCharacters);
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!shown.empty() && shown.find_first_not_of(kPlain) == std::string::npos) return shown;
  if (shown.find_first_of("\"$`\\!") == std::string::npos) return "\"" + shown + "\"";
  std::string quoted = "'";
  for (const char c : shown) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace shoal::cli
