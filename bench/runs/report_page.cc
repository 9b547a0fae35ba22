#include "bench/runs/report_page.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "bench/runs/drawings.h"
#include "bench/runs/report_template.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPlace = "REPORT_DATA";

// JSON that no HTML parser takes for markup, whatever its texts hold.
std::string inside_html(const ordered_json& json) {
  const std::string text = json.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else if (c == '>')
      safe += "\\u003e";
    else if (c == '&')
      safe += "\\u0026";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

bool can_draw_reports() { return !report_template().empty(); }

std::string report_page(std::span<const StoredRun> runs) {
  if (!can_draw_reports())
    fail(
        ErrorCode::unsupported,
        "report: this program was built without Node.js and npm, so it has no page to draw with; the run's "
        "folder has "
        "every figure, and `shoal bench report FOLDER` of a program built with -DSHOAL_WEB_PAGE=ON draws it");
  ordered_json data = {{"runs", ordered_json::array()}};
  for (const StoredRun& run : runs)
    data["runs"].push_back({{"name", run.name},
                            {"run", run.run},
                            {"summary", run.summary},
                            {"cut_off", run.cut_off},
                            {"drawings", drawings_of(run)}});
  const std::string_view page = report_template();
  const size_t at = page.find(kPlace);
  CHECK(at != std::string_view::npos && page.find(kPlace, at + 1) == std::string_view::npos,
        "the report's page");
  std::string whole(page.substr(0, at));
  whole += inside_html(data);
  return whole += page.substr(at + kPlace.size());
}

void write_report(const std::string& path, std::span<const StoredRun> runs) {
  const std::string page = report_page(runs), beside = path + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (!file || std::rename(beside.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(beside.c_str());
    fail(ErrorCode::io, path, ": cannot be written: ", why);
  }
}

}  // namespace shoal::runs
