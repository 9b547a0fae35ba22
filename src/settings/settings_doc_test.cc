// docs/SETTINGS.md cannot become outdated: its tables must equal those generated from the code.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "settings/official_names.h"
#include "settings/table.h"
#include "shoal/settings.h"

namespace shoal::settings {
namespace {

std::string code(std::string_view text) { return concat("`", text, "`"); }

// "`S1_MINI_ENABLE_BATCHING` (false: 1)"
std::string alias_cell(const Alias& alias) {
  std::string name = concat(alias.source == Source::flag ? "--" : "", alias.name);
  if (alias.source == Source::flag) std::ranges::replace(name, '_', '-');
  std::string cell = code(name);
  if (alias.is_switch)
    cell +=
        alias.if_true.empty() ? concat(" (false: ", alias.if_false, ")") : concat(" (", alias.if_true, ")");
  return cell;
}

std::string aliases_cell(const Row& row) {
  std::string cell;
  for (const Alias& alias : aliases())
    if (alias.key == row.key) cell += (cell.empty() ? "" : ", ") + alias_cell(alias);
  return cell;
}

std::string table(std::span<const Setting> settings) {
  std::string text =
      "| key | flag | variable | older names | default | range | meaning |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : settings) {
    const Row& row = *find_row(setting.key);
    const std::string flag = flag_of(setting);
    text += concat("| ", code(setting.key), " | ", code(flag), " | ", code(variable_of(setting)), " | ",
                   aliases_cell(row), " | ", code(setting.default_value), " | ",
                   row.type() == Type::boolean ? setting.type : setting.range, " | ", setting.help, " |\n");
  }
  return text;
}

TEST(SettingsDocument, HoldsTheTablesOfTheCode) {
  const std::string path = SHOAL_SOURCE_DIR "/docs/SETTINGS.md";
  const std::string document = read_file(path, 1 << 20);
  const std::string tables[] = {table(engine_settings()), table(server_settings())};
  for (size_t i = 0; i < std::size(tables); ++i) {
    if (document.find("\n" + tables[i] + "\n") != std::string::npos) continue;
    const std::string written = concat(testing::TempDir(), "/settings_table_", i, ".md");
    std::ofstream(written) << tables[i];
    ADD_FAILURE() << path << " does not hold a table of the code, which is now in " << written;
  }
}

TEST(SettingsDocument, NamesEveryOtherVariable) {
  const std::string document = read_file(SHOAL_SOURCE_DIR "/docs/SETTINGS.md", 1 << 20);
  std::vector<std::string_view> names(other_variables().begin(), other_variables().end());
  names.push_back(kCompileBackend);
  for (const std::string_view name : names)
    EXPECT_NE(document.find(concat("| ", code(name), " |")), std::string::npos) << name;
}

TEST(SettingsDocument, NamesEveryFlagOfOtherServers) {
  const std::string document = read_file(SHOAL_SOURCE_DIR "/docs/SETTINGS.md", 1 << 20);
  for (const OlderFlag& older : older_flags())
    EXPECT_NE(document.find(concat("`", older.flag)), std::string::npos) << older.flag;
}

}  // namespace
}  // namespace shoal::settings
