#include "shoal/server_config.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/blanks.h"
#include "base/error.h"
#include "settings/api_key.h"
#include "settings/table.h"
#include "settings/wyoming_address.h"

namespace shoal {
namespace {

constexpr size_t kMostModelNameBytes = 256, kMostPathBytes = 512;

void check_model_name(const char* field, const std::string& name) {
  const bool shown_as_it_is = printable(name, kMostModelNameBytes) == name;
  if (!is_utf8(name) || !shown_as_it_is)
    fail(ErrorCode::invalid_argument, field, ": expected at most ", kMostModelNameBytes,
         " printable characters, got \"", printable(name), "\"");
}

// No message contains the key itself.
void check_key(std::string_view field, const std::string& key) {
  if (!key.empty() && !settings::is_key(key))
    fail(ErrorCode::invalid_argument, field, ": expected at most ", settings::kMostKeyBytes,
         " printable ASCII characters without blanks, got ", key.size(), " characters");
}

// scheme://host or scheme://host:port, as browsers write it.
bool is_origin(std::string_view origin) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || scheme == 0 || scheme + 3 == origin.size()) return false;
  const auto fits = [](char c) { return c > ' ' && c < '\x7f'; };
  return std::ranges::all_of(origin, fits) &&
         origin.substr(scheme + 3).find_first_of("/?#@*\"\\<>") == std::string_view::npos;
}

void check_origins(std::string_view origins) {
  if (origins.empty() || origins == "*") return;
  while (true) {
    const size_t comma = std::min(origins.find(','), origins.size());
    const std::string_view origin = without_blanks(origins.substr(0, comma));
    if (!is_origin(origin))
      fail(ErrorCode::invalid_argument,
           "cors_origins: expected * or origins like https://example.org with commas between, got \"",
           printable(origin), "\"");
    if (comma == origins.size()) return;
    origins.remove_prefix(comma + 1);
  }
}

void check_word(std::string_view field, const std::string& value, std::span<const std::string_view> words) {
  if (std::ranges::count(words, value) > 0) return;
  std::string list;
  for (const std::string_view word : words) list += concat(list.empty() ? "" : ", ", word);
  fail(ErrorCode::invalid_argument, field, ": expected ", list, ", got \"", printable(value), "\"");
}

// As Request::path has it, and no pattern of the table of routes.
void check_path(std::string_view field, const std::string& path) {
  const auto fits = [](char c) {
    return c > ' ' && c < '\x7f' && std::string_view("?#%{}").find(c) == std::string_view::npos;
  };
  const bool tidy = path.starts_with('/') && path.find("//") == std::string::npos && !path.ends_with('/');
  if (path.empty() || (tidy && path.size() <= kMostPathBytes && std::ranges::all_of(path, fits))) return;
  fail(ErrorCode::invalid_argument, field, ": expected a path like /v1/predict, got \"", printable(path),
       "\"");
}

}  // namespace

std::vector<NamedModel> parse_models(std::string_view list) {
  std::vector<NamedModel> models;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const size_t equals = std::min(part.find('='), part.size());
    NamedModel model{.name = std::string(without_blanks(part.substr(0, equals))),
                     .dir = std::string(without_blanks(part.substr(std::min(equals + 1, part.size()))))};
    if (model.name.empty() || model.dir.empty())
      fail(ErrorCode::invalid_argument, "models: expected NAME=FOLDER with commas between, got \"",
           printable(part), "\"");
    check_model_name("models", model.name);
    if (std::ranges::count(models, model.name, &NamedModel::name) > 0)
      fail(ErrorCode::invalid_argument, "models: \"", printable(model.name), "\" stands there twice");
    models.push_back(std::move(model));
  }
  return models;
}

void ServerConfig::validate() const {
  constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
  settings::check_ranges(*this);
  settings::check_listen("listen", listen);
  if (!operator_listen.empty()) settings::check_listen("operator_listen", operator_listen);
  settings::check_wyoming(*this);
  check_path("health_route", health_route);
  check_path("predict_route", predict_route);
  if (!health_route.empty() && health_route == predict_route)
    fail(ErrorCode::invalid_argument, "predict_route: expected another path than health_route");
  check_model_name("model_name", model_name);
  parse_models(models);
  parse_voice_aliases(voice_aliases);
  check_key("api_key", api_key);
  check_key("admin_key", admin_key);
  if (!admin_key.empty() && admin_key == api_key)
    fail(ErrorCode::invalid_argument, "admin_key: expected another key than api_key");
  if (tls_certificate.empty() != tls_key.empty())
    fail(ErrorCode::invalid_argument, tls_key.empty() ? "tls_key" : "tls_certificate",
         ": expected a file, because ", tls_key.empty() ? "tls_certificate" : "tls_key", " names one");
  check_origins(cors_origins);
  if (max_body_memory_mb < max_body_mb)
    fail(ErrorCode::invalid_argument, "max_body_memory_mb: expected at least max_body_mb (", max_body_mb,
         "), got ", max_body_memory_mb);
  check_word("log_format", log_format, kFormats);
  check_word("log_level", log_level, kLevels);
}

}  // namespace shoal
