// The table of settings: one row for each field of EngineConfig, and the older names that people bring with
// them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "settings/value.h"
#include "shoal/engine_config.h"

namespace shoal::settings {

using Field = std::variant<bool EngineConfig::*, int EngineConfig::*, int64_t EngineConfig::*,
                           double EngineConfig::*, std::string EngineConfig::*, Precision EngineConfig::*>;

// What a value may be: bounds of integers and numbers, both included; words for texts.
struct Allowed {
  double low = 0, high = 0;
  std::string_view words = {};
};

struct Row {
  std::string_view key;
  Field field;
  std::string_view group;
  Allowed allowed;
  std::string_view help;

  Type type() const;
  std::string range() const;  // "1 to 1024"; empty for true or false
};

std::span<const Row> rows();
const Row* find_row(std::string_view key);

Value get(const Row& row, const EngineConfig& config);
// Throws Error, naming the key: invalid_argument (range, a text with a NUL), and what parse_precision throws.
// `value` has the row's type.
void set(const Row& row, const Value& value, EngineConfig& config);
// The range alone, of the value that `config` has.
void check_range(const Row& row, const EngineConfig& config);

constexpr std::string_view kPrefixes[] = {"SHOAL_", "S1_MINI_"};  // of variables

// Where a value may be given, from the strongest to the weakest.
enum class Source { flag, environment, file };

// Another name of a setting. Most take the setting's own values; a switch is true or false and stands for a
// value, or for none.
struct Alias {
  Source source;
  std::string_view name;
  std::string_view key;
  bool is_switch = false;
  std::string_view if_true = {}, if_false = {};  // empty: says nothing about the setting
};

std::span<const Alias> aliases();

// Variables that the program reads elsewhere (weights, CPU, configuration file): neither settings nor
// unknown.
std::span<const std::string_view> other_variables();

// Names from the Python servers that need a sentence of their own.
constexpr std::string_view kCompileBackend = "S1_MINI_COMPILE_BACKEND";
constexpr std::string_view kMetricsEnabled = "S1_MINI_METRICS_ENABLED";

}  // namespace shoal::settings
