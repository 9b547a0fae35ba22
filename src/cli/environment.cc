#include "cli/environment.h"

#include <cstdlib>

#include "base/error.h"

namespace shoal::cli {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> from_environment(const char* name, const char* older_name) {
  const std::optional<std::string> ours = variable(name), older = variable(older_name);
  if (ours && older && *ours != *older) {
    fail(ErrorCode::invalid_argument, name, " is \"", *ours, "\" but its older name ", older_name, " is \"",
         *older, "\"; unset one");
  }
  return ours ? ours : older;
}

}  // namespace shoal::cli
