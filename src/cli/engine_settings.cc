#include "cli/engine_settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"

namespace shoal::cli {
namespace {

constexpr const char* kOwnHeading = "Options";  // CLI11's name for options without one
constexpr const char* kOlderHeading = "Names of other servers";
constexpr const char* kTrueOrFalse = "true or false";

// "--max-batch-size" -> "max_batch_size"
std::string key_of(const std::string& flag) {
  std::string key = flag.substr(2);
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string placeholder(const Setting& setting) {
  return setting.type == "integer" ? "N" : setting.type == "number" ? "X" : "TEXT";
}

// As one would write it after the flag; an empty text is not shown.
std::string default_of(const Setting& setting) {
  const std::string& value = setting.default_value;
  return setting.type == "text" ? value.substr(1, value.size() - 2) : value;
}

// CLI11 shows the default of an option beside its name, but not that of a switch.
std::string help_of(const Setting& setting) {
  if (setting.type == kTrueOrFalse) return concat(setting.help, " (default: ", setting.default_value, ")");
  return concat(setting.help, " (", setting.range, ")");
}

}  // namespace

void EngineSettings::add_to(CLI::App& command, Scope scope) {
  const bool all = scope == Scope::server;
  for (const Setting& setting : all ? all_settings() : engine_settings())
    add_setting(command, setting, setting.group);
  for (const OlderFlag& older : older_flags())
    if (all && older.of_server) add_older(command, older, kOlderHeading);
  if (all) address_.add_to(command);
  add_config_to(command);
  // For `shoal fleet` alone: whose section of the file counts.
  if (all) command.add_option("--fleet-worker", worker_)->group("");
}

void EngineSettings::add_to(CLI::App& command, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto setting = std::ranges::find(all_settings(), key, &Setting::key);
    CHECK(setting != all_settings().end(), "no setting is called ", key);
    add_setting(command, *setting, kOwnHeading);
  }
}

void EngineSettings::add_config_to(CLI::App& command) {
  command.add_option("--config", config_path_, "TOML file of settings; default: $SHOAL_CONFIG")
      ->type_name("FILE");
  command.add_flag("--print-config", print_,
                   "print every setting and where it came from, as a file for --config");
}

void EngineSettings::add_setting(CLI::App& command, const Setting& setting, const std::string& heading) {
  const std::string flag = flag_of(setting);
  if (setting.type == kTrueOrFalse) {
    add_switch(command, flag, help_of(setting), heading);
  } else {
    Given& given = given_[setting.key];
    given.option = command.add_option(flag, given.text, help_of(setting))
                       ->type_name(placeholder(setting))
                       ->default_str(default_of(setting))
                       ->group(heading);
  }
  for (const OlderFlag& older : older_flags())
    if (older.key == setting.key && !older.of_server) add_older(command, older, heading);
}

void EngineSettings::add_older(CLI::App& command, const OlderFlag& older, const std::string& heading) {
  if (older.placeholder.empty()) return add_switch(command, older.flag, older.help, heading);
  Given& given = given_[key_of(older.flag)];
  given.option =
      command.add_option(older.flag, given.text, older.help)->type_name(older.placeholder)->group(heading);
}

void EngineSettings::add_switch(CLI::App& command, const std::string& flag, const std::string& help,
                                const std::string& heading) {
  Given& given = given_[key_of(flag)];
  given.option = command.add_flag(concat(flag, ",!--no-", flag.substr(2)), given.text, help)
                     ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
                     ->group(heading);
}

bool EngineSettings::has_file() const { return !process_settings({}, config_path_).toml_path.empty(); }

ResolvedSettings EngineSettings::resolve() const {
  std::map<std::string, std::string> flags;
  for (const auto& [key, given] : given_)
    if (given.option->count() > 0) flags[key] = given.text;
  SettingSources sources = process_settings(std::move(flags), config_path_);
  sources.worker = worker_;
  if (with_platform_ && worker_.empty()) sources.platform = platform_environment();
  if (!address_.are_given()) return resolve_settings(sources);
  sources.flags["listen"] = address_.listen(resolve_settings(sources).server.listen);
  ResolvedSettings resolved = resolve_settings(sources);
  std::ranges::find(resolved.origins, "listen", &ResolvedSettings::Origin::key)->source =
      "flags --host, --port";
  return resolved;
}

}  // namespace shoal::cli
