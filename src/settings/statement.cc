#include "settings/statement.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "settings/official_names.h"
#include "settings/toml_file.h"

namespace shoal::settings {
namespace {

struct Name {
  const Row* row = nullptr;  // null: no such name
  const Alias* alias = nullptr;
};

Name find_alias(Source source, std::string_view name) {
  for (const Alias& alias : aliases())
    if (alias.source == source && alias.name == name) return {find_row(alias.key), &alias};
  return {};
}

Name find_name(Source source, std::string_view key) {
  if (const Row* row = find_row(key)) return {row, nullptr};
  return find_alias(source, key);
}

Name find_variable(std::string_view variable) {
  for (const Setting& setting : all_settings())
    if (variable_of(setting) == variable) return {find_row(setting.key), nullptr};
  return find_alias(Source::environment, variable);
}

// The setting's value that a switch stands for.
std::optional<Value> meaning(const Alias& alias, const Row& row, bool on) {
  const std::string_view text = on ? alias.if_true : alias.if_false;
  if (text.empty()) return std::nullopt;
  return parse_value(row.type(), text);
}

std::optional<Value> parse(const Name& name, const std::string& text) {
  if (name.alias && name.alias->is_switch)
    return meaning(*name.alias, *name.row, std::get<bool>(parse_value(Type::boolean, text)));
  return parse_value(name.row->type(), text, name.row->range());
}

Statement parsed(const Name& name, const std::string& text, const std::string& source) {
  try {
    return {
        .row = name.row, .value = parse(name, text), .alias = name.alias, .source = source, .name = source};
  } catch (const Error& error) {
    fail(error.code(), name.row->key, ": ", error.message(), " (", source, ")");
  }
}

std::vector<std::string> known_variables() {
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) names.push_back(variable_of(setting));
  for (const Alias& alias : aliases())
    if (alias.source == Source::environment) names.emplace_back(alias.name);
  names.insert(names.end(), other_variables().begin(), other_variables().end());
  return names;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const Row& row : rows()) names.emplace_back(row.key);
  for (const Alias& alias : aliases())
    if (alias.source == Source::file) names.emplace_back(alias.name);
  return names;
}

// What Kubernetes and Docker put into every container beside a service called shoal or s1-mini.
bool is_service_link(std::string_view name, std::string_view value) {
  const size_t port = name.find("_PORT_");
  const bool numbered = port != std::string_view::npos && port + 6 < name.size() && name[port + 6] >= '0' &&
                        name[port + 6] <= '9';
  return name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos ||
         numbered || (name.ends_with("_PORT") && value.find("://") != std::string_view::npos);
}

// Variables that set nothing but are not mistakes.
bool is_read_elsewhere(const std::string& name, const std::string& value) {
  return std::ranges::count(other_variables(), name) > 0 || is_service_link(name, value);
}

// "an integer" with its article, for messages.
std::string one(Type type) {
  return concat(type == Type::integer ? "an " : type == Type::boolean ? "" : "a ", name_of(type));
}

Value converted(const FileEntry& entry, Type wanted, const std::string& where) {
  const Type found = static_cast<Type>(entry.value.index());
  if (found == wanted) return entry.value;
  // 20 is a number as well as 20.0.
  if (found == Type::integer && wanted == Type::number)
    return static_cast<double>(std::get<int64_t>(entry.value));
  fail(ErrorCode::invalid_argument, where, ": ", entry.key, ": expected ", one(wanted), ", got ", one(found));
}

std::string place_of(const FileEntry& entry, const std::string& path) {
  return concat(printable(path, kMaxPath), ":", entry.line);
}

// True for a key of older servers that has no effect here.
bool is_official_key(const FileEntry& entry, const std::string& path) {
  const auto name = std::ranges::find(official_names(), std::string_view(entry.key), &OfficialName::name);
  if (name == official_names().end() || !name->is_key) return false;
  const std::string where = place_of(entry, path);
  const Value value = converted(entry, Type::integer, where);
  return check_official_name(entry.key, to_toml(value), concat(where, ": ", entry.key));
}

Statement from_entry(const FileEntry& entry, const std::string& path) {
  const std::string where = place_of(entry, path);
  const Name name = find_name(Source::file, entry.key);
  if (!name.row) {
    fail(ErrorCode::invalid_argument, where, ": there is no setting \"", printable(entry.key),
         "\"; the nearest is ", nearest_name(entry.key, known_keys(), kPrefixes));
  }
  const bool is_switch = name.alias && name.alias->is_switch;
  const Value value = converted(entry, is_switch ? Type::boolean : name.row->type(), where);
  return {.row = name.row,
          .value = is_switch ? meaning(*name.alias, *name.row, std::get<bool>(value)) : value,
          .alias = name.alias,
          .source = name.alias ? concat(where, " ", entry.key) : where,
          .name = concat(where, " ", entry.key),
          .worker = entry.worker};
}

}  // namespace

std::vector<Statement> flag_statements(const std::map<std::string, std::string>& flags) {
  std::vector<Statement> statements;
  for (const auto& [key, text] : flags) {
    const Name name = find_name(Source::flag, key);
    std::string flag = "flag --" + key;
    std::ranges::replace(flag, '_', '-');
    if (name.row) {
      statements.push_back(parsed(name, text, flag));
      statements.back().of_flag = true;
    } else if (!check_official_name(key, text, flag)) {
      fail(ErrorCode::invalid_argument, printable(flag), ": there is no such setting");
    }
  }
  return statements;
}

std::vector<Statement> environment_statements(const std::map<std::string, std::string>& environment) {
  std::vector<Statement> statements;
  for (const auto& [variable, text] : environment) {
    if (text.empty()) continue;
    if (const Name name = find_variable(variable); name.row) {
      statements.push_back(parsed(name, text, "environment " + variable));
    } else if (!check_official_name(variable, text, "environment " + variable) &&
               !is_read_elsewhere(variable, text)) {
      fail(ErrorCode::invalid_argument, "environment ", printable(variable),
           ": there is no such setting; the nearest is ",
           nearest_name(variable, known_variables(), kPrefixes));
    }
  }
  return statements;
}

std::vector<Statement> file_statements(const std::string& path) {
  std::vector<Statement> statements;
  for (const FileEntry& entry : read_toml(path))
    if (!is_official_key(entry, path)) statements.push_back(from_entry(entry, path));
  return statements;
}

}  // namespace shoal::settings
