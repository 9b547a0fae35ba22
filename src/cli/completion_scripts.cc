#include <algorithm>

#include "cli/completion.h"

namespace shoal::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string all;
  for (const std::string& word : words) all.append(all.empty() ? "" : between).append(word);
  return all;
}

std::string with_escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// A word in single quotes of bash and zsh.
std::string shell_quoted(std::string_view text) {
  std::string all = "'";
  for (const char c : text) all.append(c == '\'' ? "'\\''" : std::string(1, c));
  return all + "'";
}

// What a list beside the words has room for: a description up to its first semicolon.
std::string first_part(const std::string& description) {
  return description.substr(0, description.find(';'));
}

std::string name_of_function(const CommandWords& command) {
  std::string name = "_shoal_" + command.path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string all_words(const CommandWords& command) {
  std::vector<std::string> words;
  for (const auto& below : command.subcommands) words.push_back(below.name);
  for (const auto& option : command.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  return joined(words, " ");
}

// Cases of bash: what the value of an option may be. Without choices the shell offers its files.
std::string bash_values(const CommandWords& command) {
  std::string cases;
  for (const auto& option : command.options) {
    if (!option.takes_value) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back('"' + command.path + ' ' + name + '"');
    cases += "    " + joined(patterns, "|") + ") words=" + shell_quoted(joined(option.choices, " ")) +
             "; values=1 ;;\n";
  }
  return cases;
}

// An option as zsh's _arguments wants it: '(-o --output)'{-o,--output}'[description]:value:(choices)'.
std::string zsh_option(const CommandWords::Option& option) {
  std::string text = option.names.size() > 1 ? shell_quoted("(" + joined(option.names, " ") + ")") + "{" +
                                                   joined(option.names, ",") + "}"
                                             : option.names.front();
  std::string rest = "[" + with_escaped(first_part(option.description), "[]\\:") + "]";
  if (option.takes_value)
    rest += ":value:" + (option.choices.empty() ? "_files" : "(" + joined(option.choices, " ") + ")");
  return "    " + text + shell_quoted(rest) + " \\\n";
}

std::string zsh_function(const CommandWords& command) {
  std::string text = name_of_function(command) + "() {\n  _arguments -C \\\n";
  for (const auto& option : command.options) text += zsh_option(option);
  if (command.subcommands.empty()) return text + "    '*:file:_files'\n}\n";
  text += "    '1: :->command' '*:: :->rest'\n  case $state in\n  command)\n    local -a commands=(\n";
  for (const auto& below : command.subcommands)
    text +=
        "      " + shell_quoted(below.name + ":" + with_escaped(first_part(below.description), "\\:")) + "\n";
  text += "    )\n    _describe command commands ;;\n  rest)\n    case $words[1] in\n";
  for (const auto& below : command.subcommands) {
    const CommandWords child{.path = command.path.empty() ? below.name : command.path + " " + below.name,
                             .subcommands = {},
                             .options = {}};
    text += "      " + below.name + ") " + name_of_function(child) + " ;;\n";
  }
  return text + "    esac ;;\n  esac\n}\n";
}

// Fish quotes differ: only \ and ' are escaped.
std::string fish_quoted(const std::string& text) { return "'" + with_escaped(text, "\\'") + "'"; }

std::string fish_option(const std::string& start, const CommandWords::Option& option) {
  std::string line = start;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.choices.empty())
    line += " -x -a " + fish_quoted(joined(option.choices, " "));
  else if (option.takes_value)
    line += " -r -F";
  return line + " -d " + fish_quoted(first_part(option.description)) + "\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandWords>& commands) {
  std::string paths, values, words;
  for (const CommandWords& command : commands) {
    if (!command.path.empty()) {
      const size_t last = command.path.rfind(' ');
      const std::string above = last == std::string::npos ? "" : command.path.substr(0, last);
      const std::string name = last == std::string::npos ? command.path : command.path.substr(last + 1);
      paths.append(paths.empty() ? "" : "|").append('"' + above + ' ' + name + '"');
    }
    values += bash_values(command);
    words += "    " + shell_quoted(command.path) + ") words=" + shell_quoted(all_words(command)) + " ;;\n";
  }
  return "# Completion of shoal for bash, printed by `shoal completion bash`.\n"
         "_shoal() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' words='' "
         "values='' i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"$command ${COMP_WORDS[i]}\" in\n"
         "    " +
         paths +
         ") command=${command:+$command }${COMP_WORDS[i]} ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$command $before\" in\n" +
         values +
         "  esac\n"
         "  [[ $values ]] || case \"$command\" in\n" +
         words +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "}\n"
         "complete -o default -F _shoal shoal\n";
}

std::string zsh_completion(const std::vector<CommandWords>& commands) {
  std::string text = "#compdef shoal\n# Completion of shoal for zsh, printed by `shoal completion zsh`.\n";
  for (const CommandWords& command : commands) text += zsh_function(command);
  return text + name_of_function({}) + " \"$@\"\n";
}

std::string fish_completion(const std::vector<CommandWords>& commands) {
  std::string text =
      "# Completion of shoal for fish, printed by `shoal completion fish`.\n"
      "# True where the words before the cursor that name commands are the given ones.\n"
      "function __shoal_at\n"
      "  set -l path ''\n"
      "  for word in (commandline -opc)[2..]\n"
      "    set -l next (string trim \"$path $word\")\n"
      "    contains -- $next $__shoal_commands; and set path $next\n"
      "  end\n"
      "  test \"$path\" = \"$argv[1]\"\n"
      "end\n";
  std::vector<std::string> paths;
  for (const CommandWords& command : commands)
    if (!command.path.empty()) paths.push_back(fish_quoted(command.path));
  text += "set -g __shoal_commands " + joined(paths, " ") + "\n";
  for (const CommandWords& command : commands) {
    const std::string start = "complete -c shoal -n " + fish_quoted("__shoal_at \"" + command.path + "\"");
    for (const auto& below : command.subcommands)
      text += start + " -f -a " + below.name + " -d " + fish_quoted(first_part(below.description)) + "\n";
    for (const auto& option : command.options) text += fish_option(start, option);
  }
  return text;
}

}  // namespace shoal::cli
