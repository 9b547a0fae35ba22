// The table of settings: one row for each field of EngineConfig and ServerConfig, and the older names that
// people bring with them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "settings/value.h"
#include "shoal/engine_config.h"
#include "shoal/server_config.h"

namespace shoal::settings {

// The configuration that the table sets.
struct Configs {
  EngineConfig engine;
  ServerConfig server;
  bool operator==(const Configs&) const = default;
};

using Field =
    std::variant<bool EngineConfig::*, int EngineConfig::*, int64_t EngineConfig::*, double EngineConfig::*,
                 std::string EngineConfig::*, Precision EngineConfig::*, WeightFormat EngineConfig::*,
                 KvPrecision EngineConfig::*, CodecWeights EngineConfig::*, bool ServerConfig::*,
                 int ServerConfig::*, std::string ServerConfig::*>;

// The allowed values: bounds of integers and numbers, both included; words for texts.
struct Allowed {
  double low = 0, high = 0;
  std::string_view words = {};
  bool secret = false;  // its value is shown nowhere
};

struct Row {
  std::string_view key;
  Field field;
  std::string_view group;
  Allowed allowed;
  std::string_view help;

  Type type() const;
  std::string range() const;  // "1 to 1024"; empty for true or false
  bool of_server() const;
};

std::span<const Row> rows();  // of the engine, then of the server
const Row* find_row(std::string_view key);

Value get(const Row& row, const Configs& configs);
// Throws Error, naming the key: invalid_argument (range, a text with a NUL), and what parse_precision and
// parse_weight_format throw.
// `value` has the row's type.
void set(const Row& row, const Value& value, Configs& configs);
// Only the ranges of every field.
void check_ranges(const EngineConfig& config);
void check_ranges(const ServerConfig& config);

// For messages and lists: as settings::shown and to_toml, but kShownSecret for a secret that is set.
std::string shown(const Row& row, const Value& value);
std::string to_toml(const Row& row, const Value& value);
constexpr std::string_view kShownSecret = "(set)";  // set() refuses it, so that no list becomes a key

constexpr std::string_view kPrefixes[] = {"SHOAL_", "S1_MINI_"};  // of variables

// Where a value may be given, from the strongest to the weakest.
enum class Source { flag, environment, file };

// Another name of a setting. Most accept the setting's own values; a switch is true or false and stands for
// one value, or for none.
struct Alias {
  Source source;
  std::string_view name;
  std::string_view key;
  bool is_switch = false;
  std::string_view if_true = {}, if_false = {};  // empty: no effect on the setting
  bool of_server = false;                        // a flag only of the server's command
};

std::span<const Alias> aliases();

// Variables that the program reads elsewhere (weights, CPU, configuration file): neither settings nor
// unknown.
std::span<const std::string_view> other_variables();

}  // namespace shoal::settings
