// The statements of each source, before their precedence decides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal::settings {

// One setting given in one place.
struct Statement {
  const Row* row = nullptr;
  std::optional<Value> value;    // of the row's type; none: a switch without effect (enable_batching = true)
  const Alias* alias = nullptr;  // when an older name was used
  std::string source;            // as in ResolvedSettings::Origin
  std::string name;              // as it was written, with its source: unmistakable in a message
  bool of_flag = false;
  std::string worker = {};  // of whose section of the file it is; empty: of none
};

// Each throws Error(invalid_argument, unsupported): unknown names, values of the wrong type, names that are
// refused; the file also as read_toml does.
std::vector<Statement> flag_statements(const std::map<std::string, std::string>& flags);
std::vector<Statement> environment_statements(const std::map<std::string, std::string>& environment);
std::vector<Statement> file_statements(const std::string& path);

}  // namespace shoal::settings
