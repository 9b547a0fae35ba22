#include "shoal/settings.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unistd.h>

#include "base/error.h"
#include "settings/official_names.h"
#include "settings/platform.h"
#include "settings/statement.h"

namespace shoal {
namespace {

using settings::Row;
using settings::Statement;

constexpr const char* kConfigVariable = "SHOAL_CONFIG";
constexpr const char* kMountVariable = "SHOAL_MODEL_MOUNT";

// Two names within one source that disagree are never a guess.
void check_agreement(const std::vector<Statement>& statements) {
  for (size_t i = 0; i < statements.size(); ++i) {
    for (size_t j = i + 1; j < statements.size(); ++j) {
      const Statement &a = statements[i], &b = statements[j];
      if (a.row != b.row || !a.value || !b.value || a.value == b.value) continue;
      fail(ErrorCode::invalid_argument, a.row->key, ": ", a.name, " says ", settings::shown(*a.row, *a.value),
           " but ", b.name, " says ", settings::shown(*b.row, *b.value), "; keep one");
    }
  }
}

bool is_switch(const Statement& statement) { return statement.alias && statement.alias->is_switch; }

// The strongest statement about `row`. A switch in a stronger source hides the same switch in weaker ones,
// even if it has no value: enable_batching = true in the environment overrides a false in the file.
const Statement* winner(const Row& row, const std::vector<std::vector<Statement>>& sources) {
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

void apply(const Statement& statement, settings::Configs& configs) {
  try {
    settings::set(*statement.row, *statement.value, configs);
  } catch (const Error& error) {
    fail(error.code(), error.message(), " (", statement.source, ")");
  }
}

// validate() names the field first: add where its value came from.
template <typename Config>
void validate(const Config& config, const std::vector<ResolvedSettings::Origin>& origins) {
  try {
    config.validate();
  } catch (const Error& error) {
    const std::string key = error.message().substr(0, error.message().find(':'));
    const auto origin = std::ranges::find(origins, key, &ResolvedSettings::Origin::key);
    if (origin == origins.end()) throw;
    fail(error.code(), error.message(), " (", origin->source, ")");
  }
}

// Older servers had one model each: their batching switches say nothing about further models, whose batches
// max_batch_size would set to one as well.
void check_switched_batching(const Statement* batching, const ServerConfig& server) {
  if (!batching || !is_switch(*batching) || server.models.empty()) return;
  fail(ErrorCode::unsupported, "max_batch_size: ", batching->name,
       " is of one model, but models names more, which all have the same max_batch_size; set that to 1 if "
       "it is meant for all, or leave it out");
}

// Where a platform puts the model of an image, if it puts one there: what lies in the folder is the model of
// a process that no other source gives one.
void take_mounted_model(const SettingSources& sources, ResolvedSettings& resolved) {
  const auto mount = sources.environment.find(kMountVariable);
  if (mount == sources.environment.end() || mount->second.empty() || !resolved.config.model.empty()) return;
  std::error_code absent;
  const bool empty = std::filesystem::is_empty(mount->second, absent);
  if (absent || empty) return;
  resolved.config.model = mount->second;
  const auto origin = std::ranges::find(resolved.origins, "model", &ResolvedSettings::Origin::key);
  origin->source = concat("environment ", kMountVariable);
}

// Everybody on the machine can read the arguments of a process.
std::string note_on_visible_key(const Row& row, const std::string& source) {
  const Setting setting{.key = std::string(row.key)};
  return concat(source, ": the list of processes shows the key; better give it in ", variable_of(setting),
                " or in the file that ", flag_of(setting), "-file names");
}

// From the strongest source to the weakest.
std::vector<std::vector<Statement>> statements_of(const SettingSources& sources,
                                                  std::vector<ResolvedSettings::OfWorker>& of_workers) {
  std::vector<Statement> section, file;
  if (!sources.toml_path.empty()) {
    for (Statement& statement : settings::file_statements(sources.toml_path)) {
      if (!statement.worker.empty())
        of_workers.push_back({statement.worker, std::string(statement.row->key), statement.source});
      if (statement.worker.empty())
        file.push_back(std::move(statement));
      else if (statement.worker == sources.worker)
        section.push_back(std::move(statement));
    }
  }
  std::vector<std::vector<Statement>> statements;
  statements.push_back(std::move(section));
  statements.push_back(settings::flag_statements(sources.flags));
  statements.push_back(settings::environment_statements(sources.environment));
  statements.push_back(std::move(file));
  for (const std::vector<Statement>& source : statements) check_agreement(source);
  return statements;
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
  const std::vector<std::vector<Statement>> statements = statements_of(sources, resolved.of_workers);
  settings::Configs configs;
  std::set<std::string_view> of_flags;  // keys
  for (const Row& row : settings::rows()) {
    const Statement* statement = winner(row, statements);
    if (statement && statement->of_flag) of_flags.insert(row.key);
    if (statement) apply(*statement, configs);
    if (statement && row.allowed.secret && statement->of_flag)
      resolved.notes.push_back(note_on_visible_key(row, statement->source));
    resolved.origins.push_back({std::string(row.key), statement ? statement->source : "default"});
  }
  for (settings::PlatformValue& told : settings::platform_values(sources.platform, configs.server)) {
    if (of_flags.contains(told.key)) continue;
    settings::set(*settings::find_row(told.key), told.value, configs);
    std::ranges::find(resolved.origins, told.key, &ResolvedSettings::Origin::key)->source =
        std::move(told.source);
  }
  resolved.config = std::move(configs.engine);
  resolved.server = std::move(configs.server);
  take_mounted_model(sources, resolved);
  check_switched_batching(winner(*settings::find_row("max_batch_size"), statements), resolved.server);
  validate(resolved.config, resolved.origins);
  validate(resolved.server, resolved.origins);
  if (sources.worker.empty() && !resolved.of_workers.empty())
    resolved.notes.push_back(concat(resolved.of_workers.front().source, ": [workers.",
                                    resolved.of_workers.front().worker,
                                    "] is for a worker of a fleet, and this is none"));
  if (const auto path = sources.flags.find(std::string(settings::kDecoderPath)); path != sources.flags.end())
    settings::check_decoder_path(path->second, resolved.config.model);
  return resolved;
}

std::string print_settings(const ResolvedSettings& resolved, std::span<const Setting> which) {
  const settings::Configs configs{resolved.config, resolved.server};
  std::string out;
  for (const std::string& note : resolved.notes) out += concat("# ", note, "\n");
  for (const Setting& setting : which) {
    const Row& row = *settings::find_row(setting.key);
    const settings::Value value = settings::get(row, configs);
    const std::string text = [&] {
      try {
        return settings::to_toml(row, value);
      } catch (const Error& error) {
        fail(error.code(), row.key, ": ", error.message());
      }
    }();
    const auto origin = std::ranges::find(resolved.origins, setting.key, &ResolvedSettings::Origin::key);
    const bool hidden = text != settings::to_toml(value);
    out += concat(row.key, " = ", text, "  # ", origin == resolved.origins.end() ? "" : origin->source,
                  hidden ? "; the key is not shown: put it here before this is used as a file" : "", "\n");
  }
  return out;
}

}  // namespace shoal
