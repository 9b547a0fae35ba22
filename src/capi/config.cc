#include "capi/config.h"

#include <string>

#include "base/nearest.h"
#include "base/printable.h"
#include "capi/buffer.h"
#include "capi/call.h"
#include "shoal/settings.h"

namespace shoal::capi {
namespace {

const settings::Row& row_of(std::string_view name) {
  const settings::Row* row = settings::find_row(name);
  if (row && !row->of_server()) return *row;
  if (row) fail(ErrorCode::unsupported, name, ": it is a setting of the server, not of an engine");
  std::vector<std::string> known;
  for (const Setting& setting : engine_settings()) known.push_back(setting.key);
  fail(ErrorCode::invalid_argument, "settings have no \"", printable(name), "\"; did you mean \"",
       nearest_name(name, known), "\"?");
}

settings::Value setting_value(const settings::Row& row, const char* text) {
  if (!text) return settings::get(row, {});
  try {
    return settings::parse_value(row.type(), text, row.range());
  } catch (const Error& error) {
    fail(error.code(), row.key, ": ", error.message());
  }
}

// Without the quotes of TOML.
std::string plain_text(const settings::Row& row, const settings::Configs& values) {
  const settings::Value value = settings::get(row, values);
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : settings::to_toml(value);
}

server::Value setting_json(const Setting& setting) {
  return {server::Value::Object{{"name", {setting.key}},
                                {"type", {setting.type}},
                                {"default", {plain_text(row_of(setting.key), {})}},
                                {"range", {setting.range}},
                                {"group", {setting.group}},
                                {"help", {setting.help}}}};
}

}  // namespace
}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_config_new(shoal_config** config, shoal_error* error) {
  return call(error, [&] {
    shoal_config*& out = output(config, "config");
    out = new shoal_config;
  });
}

void shoal_config_free(shoal_config* config) { delete config; }

shoal_code shoal_config_set(shoal_config* config, const char* name, const char* value, shoal_error* error) {
  return call(error, [&] {
    shoal::settings::Configs& values = held(config, "config").values;
    const shoal::settings::Row& row = row_of(text_of(name, "name"));
    shoal::settings::set(row, setting_value(row, value), values);
  });
}

shoal_code shoal_config_get(const shoal_config* config, const char* name, shoal_buffer** value,
                            shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(value, "value");
    out = buffer_of(plain_text(row_of(text_of(name, "name")), held(config, "config").values));
  });
}

shoal_code shoal_config_load(shoal_config* config, const char* toml_path, int32_t environment,
                             shoal_error* error) {
  return call(error, [&] {
    shoal_config& into = held(config, "config");
    const std::string path = text_or_empty(toml_path);
    const shoal::SettingSources sources =
        environment != 0 ? shoal::process_settings({}, path) : shoal::SettingSources{.toml_path = path};
    into.values.engine = shoal::resolve_settings(sources).config;
  });
}

shoal_code shoal_config_fields(shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    shoal::server::Value::Array fields;
    for (const shoal::Setting& setting : shoal::engine_settings()) fields.push_back(setting_json(setting));
    out = json_buffer({std::move(fields)});
  });
}
