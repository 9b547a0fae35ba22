// Where settings come from: flags, then environment, then a TOML file, then defaults (docs/SETTINGS.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine_config.h"

namespace shoal {

// One line of the table of settings.
struct Setting {
  std::string_view key;   // of the TOML file; the flag is --key with '-' for '_', the variable SHOAL_KEY
  std::string_view help;  // one line, with the range
  std::string_view type;  // "text", "integer", "number", "true or false"
};

// Every setting, in the order of EngineConfig.
std::span<const Setting> engine_settings();
std::string flag_of(const Setting& setting);      // "--max-batch-size"
std::string variable_of(const Setting& setting);  // "SHOAL_MAX_BATCH_SIZE"

struct SettingSources {
  std::map<std::string, std::string> flags;  // key -> value, only those given
  // Looks a variable up; absent when unset. Defaults to the process's environment.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  // Names of all variables, to refuse unknown ones that begin with SHOAL_ or S1_MINI_.
  std::vector<std::string> environment_names;
  std::string toml_path;  // empty: none
};

// The process's environment, with the file named by $SHOAL_CONFIG unless flags name one.
SettingSources process_settings(std::map<std::string, std::string> flags, std::string toml_path);

struct ResolvedSettings {
  EngineConfig config;
  struct Origin {
    std::string key, value,
        source;  // source: "flag --x", "environment S1_MINI_DEVICE", "shoal.toml:3", "default"
  };
  std::vector<Origin> origins;  // one for each setting, in the table's order
};

// Throws Error(invalid_argument or unsupported) naming the source: a value out of its range, an unknown key
// or variable, one setting under two names with different values; io, not_found (the file). The result has
// passed EngineConfig::validate.
ResolvedSettings resolve_settings(const SettingSources& sources);

// Lines "key = value  # source", a valid TOML file: what --print-config prints.
std::string print_settings(const ResolvedSettings& settings);

}  // namespace shoal
