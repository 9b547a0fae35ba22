#include "shoal/settings.h"

#include <algorithm>
#include <unistd.h>

#include "base/error.h"
#include "settings/statement.h"

namespace shoal {
namespace {

using settings::Row;
using settings::Statement;

constexpr const char* kConfigVariable = "SHOAL_CONFIG";

// Two names within one source that disagree are never a guess.
void check_agreement(const std::vector<Statement>& statements) {
  for (size_t i = 0; i < statements.size(); ++i) {
    for (size_t j = i + 1; j < statements.size(); ++j) {
      const Statement &a = statements[i], &b = statements[j];
      if (a.row != b.row || !a.value || !b.value || a.value == b.value) continue;
      fail(ErrorCode::invalid_argument, a.row->key, ": ", a.name, " says ", settings::shown(*a.value),
           " but ", b.name, " says ", settings::shown(*b.value), "; keep one");
    }
  }
}

// The strongest statement about `row`. A switch that a stronger source has set silences the same switch below
// it, also where it says nothing itself: enable_batching = true in the environment lifts a false in the file.
const Statement* winner(const Row& row, const std::vector<std::vector<Statement>>& sources) {
  const auto is_switch = [](const Statement& s) { return s.alias && s.alias->is_switch; };
  bool switched_above = false;
  for (const std::vector<Statement>& statements : sources) {
    const Statement* found = nullptr;
    for (const Statement& s : statements) {
      if (s.row != &row) continue;
      const bool silenced = switched_above && is_switch(s);
      // Its own name is shown before an older one that says the same.
      if (s.value && !silenced && (!found || !s.alias)) found = &s;
    }
    if (found) return found;
    for (const Statement& s : statements) switched_above |= s.row == &row && is_switch(s);
  }
  return nullptr;
}

void apply(const Statement& statement, EngineConfig& config) {
  try {
    settings::set(*statement.row, *statement.value, config);
  } catch (const Error& error) {
    fail(error.code(), error.message(), " (", statement.source, ")");
  }
}

// validate() names the field first: add where its value came from.
void validate(const ResolvedSettings& resolved) {
  try {
    resolved.config.validate();
  } catch (const Error& error) {
    const std::string key = error.message().substr(0, error.message().find(':'));
    const auto origin = std::ranges::find(resolved.origins, key, &ResolvedSettings::Origin::key);
    if (origin == resolved.origins.end()) throw;
    fail(error.code(), error.message(), " (", origin->source, ")");
  }
}

}  // namespace

SettingSources process_settings(std::map<std::string, std::string> flags, std::string toml_path) {
  SettingSources sources{.flags = std::move(flags), .toml_path = std::move(toml_path)};
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    const bool ours = std::ranges::any_of(settings::kPrefixes,
                                          [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (ours) sources.environment.emplace(name, text.substr(equals + 1));
  }
  const auto config = sources.environment.find(kConfigVariable);
  if (sources.toml_path.empty() && config != sources.environment.end()) sources.toml_path = config->second;
  return sources;
}

ResolvedSettings resolve_settings(const SettingSources& sources) {
  ResolvedSettings resolved;
  std::vector<std::vector<Statement>> statements;
  statements.push_back(settings::flag_statements(sources.flags));
  statements.push_back(settings::environment_statements(sources.environment, resolved.notes));
  if (!sources.toml_path.empty()) statements.push_back(settings::file_statements(sources.toml_path));
  for (const std::vector<Statement>& source : statements) check_agreement(source);
  for (const Row& row : settings::rows()) {
    const Statement* statement = winner(row, statements);
    if (statement) apply(*statement, resolved.config);
    resolved.origins.push_back({std::string(row.key), statement ? statement->source : "default"});
  }
  validate(resolved);
  return resolved;
}

std::string print_settings(const ResolvedSettings& resolved) {
  std::string out;
  for (const std::string& note : resolved.notes) out += concat("# ", note, "\n");
  for (size_t i = 0; i < settings::rows().size(); ++i) {
    const Row& row = settings::rows()[i];
    try {
      out += concat(row.key, " = ", settings::to_toml(settings::get(row, resolved.config)));
    } catch (const Error& error) {
      fail(error.code(), row.key, ": ", error.message());
    }
    const std::string source = i < resolved.origins.size() ? resolved.origins[i].source : "";
    out += concat("  # ", source, "\n");
  }
  return out;
}

}  // namespace shoal
