// The table of settings as options of a command (docs/SETTINGS.md).
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "cli/host_and_port.h"
#include "shoal/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shoal::cli {

// Holds the parsed options of one command; it lives as long as the command and never moves.
class EngineSettings {
 public:
  EngineSettings() = default;
  EngineSettings(const EngineSettings&) = delete;
  EngineSettings& operator=(const EngineSettings&) = delete;

  enum class Scope { engine, server };  // server: the engine inside it, too
  // Every setting of the scope, under the headings of the table, with --config FILE and --print-config.
  void add_to(CLI::App& command, Scope scope = Scope::engine);
  // Only the settings with these keys, beside the command's own options.
  void add_to(CLI::App& command, std::initializer_list<std::string_view> keys);
  void add_config_to(CLI::App& command);
  // resolve() minds what a cloud says of the server's port and paths, too; not for a worker of a fleet.
  void mind_platform() { with_platform_ = true; }

  // What flags, environment and file say together, after parsing. Throws Error as resolve_settings does.
  ResolvedSettings resolve() const;
  // Whether resolve() reads a file: --config or $SHOAL_CONFIG.
  bool has_file() const;
  // --print-config: the command prints print_settings(resolve()) and does nothing else.
  bool wants_print() const { return print_; }

 private:
  struct Given {
    std::string text;
    CLI::Option* option = nullptr;
  };

  void add_setting(CLI::App& command, const Setting& setting, const std::string& heading);
  void add_older(CLI::App& command, const OlderFlag& older, const std::string& heading);
  void add_switch(CLI::App& command, const std::string& flag, const std::string& help,
                  const std::string& heading);

  std::map<std::string, Given> given_;  // by the key of SettingSources::flags
  HostAndPort address_;
  std::string config_path_, worker_;
  bool print_ = false, with_platform_ = false;
};

}  // namespace shoal::cli
