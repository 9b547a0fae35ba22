// The table as the public API shows it.
#include <algorithm>

#include "base/error.h"
#include "settings/official_names.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal {
namespace {

using settings::Alias;
using settings::Row;
using settings::Source;

std::string flag_named(std::string_view key) {
  std::string flag = concat("--", key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

Setting setting_of(const Row& row) {
  Setting setting{.key = std::string(row.key),
                  .type = std::string(name_of(row.type())),
                  .group = std::string(row.group),
                  .help = std::string(row.help),
                  .range = row.range(),
                  .default_value = settings::to_toml(settings::get(row, {})),
                  .older_names = {},
                  .of_server = row.of_server()};
  for (const Alias& alias : settings::aliases()) {
    if (alias.key == row.key)
      setting.older_names.push_back(alias.source == Source::flag ? flag_named(alias.name)
                                                                 : std::string(alias.name));
  }
  return setting;
}

OlderFlag flag_of_alias(const Alias& alias) {
  const Row& row = *settings::find_row(alias.key);
  const bool is_switch = alias.is_switch || row.type() == settings::Type::boolean;
  return {.flag = flag_named(alias.name),
          .key = std::string(alias.key),
          .placeholder = is_switch ? "" : "TEXT",
          .help = concat("older name, see ", flag_named(alias.key)),
          .of_server = alias.of_server};
}

}  // namespace

std::span<const Setting> all_settings() {
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> all;
    for (const Row& row : settings::rows()) all.push_back(setting_of(row));
    return all;
  }();
  return settings;
}

std::span<const Setting> engine_settings() {
  const auto all = all_settings();
  const auto first_of_server = std::ranges::find(all, true, &Setting::of_server);
  return all.first(static_cast<size_t>(first_of_server - all.begin()));
}

std::span<const Setting> server_settings() { return all_settings().subspan(engine_settings().size()); }

std::span<const OlderFlag> older_flags() {
  static const std::vector<OlderFlag> flags = [] {
    std::vector<OlderFlag> all;
    for (const Alias& alias : settings::aliases())
      if (alias.source == Source::flag) all.push_back(flag_of_alias(alias));
    for (const settings::OfficialName& name : settings::official_names()) {
      if (!name.is_flag) continue;
      all.push_back({.flag = flag_named(name.name),
                     .key = {},
                     .placeholder = "TEXT",
                     .help = std::string(name.help),
                     .of_server = true});
    }
    return all;
  }();
  return flags;
}

std::string flag_of(const Setting& setting) { return flag_named(setting.key); }

std::string variable_of(const Setting& setting) {
  std::string variable = "SHOAL_" + setting.key;
  std::ranges::transform(variable, variable.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return variable;
}

}  // namespace shoal
