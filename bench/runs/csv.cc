#include "bench/runs/csv.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;
using Line = std::vector<std::pair<std::string, std::string>>;

void flatten(const ordered_json& json, const std::string& name, Line& into) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      if (key != "failures") flatten(value, name.empty() ? key : name + "_" + key, into);
  } else if (json.is_number() || json.is_string()) {
    into.emplace_back(name, json.is_string() ? json.get<std::string>() : json.dump());
  }
}

}  // namespace

std::string csv_of(std::span<const ordered_json> rows) {
  // A row without, say, completed requests has fewer figures than another: columns are all that occur.
  std::vector<std::string> columns;
  std::vector<Line> lines;
  for (const ordered_json& row : rows) {
    flatten(row, "", lines.emplace_back());
    for (const auto& [name, value] : lines.back())
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  }
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ",") + column;
  text += '\n';
  for (const Line& line : lines) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto found =
          std::find_if(line.begin(), line.end(), [&](const auto& cell) { return cell.first == columns[i]; });
      text += (i > 0 ? "," : "") + (found == line.end() ? "" : found->second);
    }
    text += '\n';
  }
  return text;
}

}  // namespace shoal::runs
