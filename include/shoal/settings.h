// Where settings come from: flags, then environment, then a TOML file, then defaults (docs/SETTINGS.md).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine_config.h"
#include "shoal/server_config.h"

namespace shoal {

// One line of the table of settings.
struct Setting {
  std::string key;            // of the TOML file; the flag is --key with '-' for '_', the variable SHOAL_KEY
  std::string type;           // "text", "integer", "number", "true or false"
  std::string group;          // heading of --help
  std::string help;           // one line
  std::string range;          // "1 to 1024"; for texts the allowed values
  std::string default_value;  // as TOML writes it
  // Older names that set it: variables (S1_MINI_DEVICE), switches (--half) and keys (enable_batching).
  std::vector<std::string> older_names;
  bool of_server = false;
};

// In the order of EngineConfig, then of ServerConfig.
std::span<const Setting> all_settings();
std::span<const Setting> engine_settings();
std::span<const Setting> server_settings();
std::string flag_of(const Setting& setting);      // "--max-batch-size"
std::string variable_of(const Setting& setting);  // "SHOAL_MAX_BATCH_SIZE"

// A flag that older servers have.
struct OlderFlag {
  std::string flag;  // "--half"
  std::string key;   // of the setting that it sets; empty: only the value that already applies is accepted
  std::string placeholder;  // of its value, "TEXT"; empty: a switch, with a --no- form
  std::string help;
  bool of_server = false;  // only for the server's command
};

std::span<const OlderFlag> older_flags();

struct SettingSources {
  // Key, or the name of an older switch without its dashes ("half"), -> value; only those given.
  std::map<std::string, std::string> flags;
  // Name -> value of the variables that begin with SHOAL_ or S1_MINI_; empty values count as unset.
  std::map<std::string, std::string> environment;
  std::string toml_path;  // empty: none
  // The worker of a fleet that is meant: its section [workers.NAME] of the file comes before everything else.
  // Empty: none.
  std::string worker = {};
  // Variables that a cloud sets for a server, without a prefix of ours (docs/DEPLOY.md): PORT, AIP_...
  std::map<std::string, std::string> platform = {};
};

// With the process's environment, and the file named by $SHOAL_CONFIG unless `toml_path` names one.
SettingSources process_settings(std::map<std::string, std::string> flags, std::string toml_path);

// The variables of RunPod and Vertex AI in this process's environment, for SettingSources::platform. They
// come before SHOAL_LISTEN and the like, which an image sets, but after flags.
std::map<std::string, std::string> platform_environment();

struct ResolvedSettings {
  EngineConfig config;
  ServerConfig server;
  struct Origin {
    std::string key;
    std::string source;  // "flag --x", "environment S1_MINI_DEVICE", "shoal.toml:3", "default"
  };
  std::vector<Origin> origins;  // one for each setting, in the table's order
  struct OfWorker {
    std::string worker, key;
    std::string source;  // "shoal.toml:7"
  };
  std::vector<OfWorker> of_workers;  // what stands in sections of the file, whose ever they are
  // Sentences for the log of a server: accepted settings that deserve a warning.
  std::vector<std::string> notes;
};

// Throws Error(invalid_argument or unsupported) naming the source: a value of the wrong type or out of its
// range, an unknown key or variable, one setting under two names with different values; for the file also
// not_found, io, too_large (over 1 MiB) and corrupt_file (not TOML). The result has passed
// EngineConfig::validate and ServerConfig::validate.
ResolvedSettings resolve_settings(const SettingSources& sources);

// Lines "key = value  # source" of these settings, a valid TOML file that gives the same values: what
// --print-config prints. Keys of the server are "(set)" there, which resolve_settings refuses. Throws
// Error(invalid_argument) when a text is not UTF-8, which TOML cannot hold.
std::string print_settings(const ResolvedSettings& resolved, std::span<const Setting> which = all_settings());

}  // namespace shoal
