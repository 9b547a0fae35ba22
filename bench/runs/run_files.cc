#include "bench/runs/run_files.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "bench/runs/schema.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = 64 << 20;
constexpr size_t kMostLine = 1 << 20, kMostRequests = 4'000'000;
constexpr int kMostDepth = 32;  // of brackets: writing JSON again takes stack for each
constexpr int64_t kMostGroups = 100'000;

// `where`: "a/run.json", or with a line. Throws Error(corrupt_file) unless it is an object.
ordered_json parse_object(std::string_view text, const std::string& where) {
  const auto shallow = [&](int depth, ordered_json::parse_event_t, ordered_json&) {
    if (depth > kMostDepth)
      fail(ErrorCode::corrupt_file, where, ": more than ", kMostDepth, " brackets inside each other");
    return true;
  };
  ordered_json json = ordered_json::parse(text, shallow, false);
  if (json.is_discarded()) fail(ErrorCode::corrupt_file, where, ": damaged: it is no JSON");
  if (!json.is_object()) fail(ErrorCode::corrupt_file, where, ": damaged: expected a JSON object");
  return json;
}

void check_schema(const ordered_json& json, const std::string& path, const char* known) {
  const auto found = json.find("schema");
  if (found == json.end() || !found->is_string())
    fail(ErrorCode::invalid_argument, path, ": it names no schema; expected \"", known, "\"");
  if (found->get<std::string>() != known)
    fail(ErrorCode::invalid_argument, path, ": its schema is ",
         found->dump(-1, ' ', true, ordered_json::error_handler_t::replace), "; this program reads \"", known,
         "\"");
}

ordered_json read_object(const std::string& path, const char* schema) {
  std::error_code error;
  if (const uintmax_t bytes = fs::file_size(path, error); !error && bytes > kMostBytes)
    fail(ErrorCode::too_large, path, ": ", bytes, " bytes, more than ", kMostBytes);
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) fail(ErrorCode::io, path, ": cannot be read");
  ordered_json json = parse_object(text, path);
  check_schema(json, path, schema);
  return json;
}

std::optional<double> number_in(const ordered_json& line, const char* name, const std::string& where) {
  const auto found = line.find(name);
  if (found == line.end() || found->is_null()) return {};
  if (!found->is_number()) fail(ErrorCode::corrupt_file, where, ": damaged: ", name, " is no number");
  return found->get<double>();
}

std::string word_in(const ordered_json& line, const char* name, const std::string& where) {
  const auto found = line.find(name);
  if (found == line.end()) return {};
  if (!found->is_string()) fail(ErrorCode::corrupt_file, where, ": damaged: ", name, " is no text");
  return found->get<std::string>();
}

Request request_of(const ordered_json& line, const char* group, int64_t groups, const std::string& where) {
  const auto of = line.find(group);
  if (of == line.end() || !of->is_number_integer())
    fail(ErrorCode::corrupt_file, where, ": damaged: it has no ", group);
  const auto slow = line.find("slow");
  Request request{.group = of->get<int64_t>(),
                  .outcome = word_in(line, "outcome", where),
                  .text = word_in(line, "text", where),
                  .phase = word_in(line, "phase", where),
                  .slow = slow != line.end() && *slow == true,
                  .due_s = number_in(line, "due_s", where).value_or(0),
                  .first_audible_ms = number_in(line, "first_audible_ms", where),
                  .latency_ms = number_in(line, "latency_ms", where)};
  // A level that was not summarised is the one in which the program was killed.
  if (request.group < 0 || request.group > groups)
    fail(ErrorCode::corrupt_file, where, ": damaged: ", group, " ", request.group, " of ", groups);
  return request;
}

void read_requests(const std::string& path, StoredRun& run, const char* group, int64_t groups) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::not_found, path, ": cannot be read; the run is not whole");
  std::string buffer(kMostLine + 1, '\0');
  for (int64_t number = 1; file.getline(buffer.data(), std::ssize(buffer)) || file.gcount() > 0; ++number) {
    const std::string where = concat(path, ", line ", number);
    if (file.fail()) fail(ErrorCode::too_large, where, ": longer than ", kMostLine, " bytes");
    if (file.eof()) {
      run.cut_off = true;
      return;
    }
    if (run.requests.size() == kMostRequests)
      fail(ErrorCode::too_large, path, ": more than ", kMostRequests, " requests");
    const std::string_view line(buffer.data(), static_cast<size_t>(file.gcount()) - 1);
    run.requests.push_back(request_of(parse_object(line, where), group, groups, where));
  }
}

// What the summary counts: "levels" of load.
int64_t groups_in(const ordered_json& summary, const char* name, const std::string& path) {
  const auto found = summary.find(name);
  if (found == summary.end() || !found->is_array())
    fail(ErrorCode::corrupt_file, path, ": damaged: it has no list \"", name, "\"");
  for (const ordered_json& each : *found)
    if (!each.is_object()) fail(ErrorCode::corrupt_file, path, ": damaged: \"", name, "\" holds no objects");
  if (std::ssize(*found) > kMostGroups) fail(ErrorCode::too_large, path, ": ", found->size(), " ", name);
  return std::ssize(*found);
}

}  // namespace

StoredRun read_run(const std::string& folder) {
  const auto path = [&](const char* name) { return (fs::path(folder) / name).string(); };
  std::error_code error;
  if (!fs::is_directory(folder, error)) fail(ErrorCode::not_found, folder, ": there is no such folder");
  if (!fs::is_regular_file(path("run.json"), error))
    fail(ErrorCode::not_found, folder, ": no folder of a run: it has no run.json");
  StoredRun run;
  run.name = fs::weakly_canonical(folder, error).filename().string();
  run.run = read_object(path("run.json"), kRunSchema);
  const auto kind = run.run.find("kind");
  const bool suite = kind != run.run.end() && *kind == "suite";
  const char* const groups = suite ? "configurations" : "levels";
  // Without a summary the run ended before its first level did: run.json says why.
  run.summary = fs::exists(path("summary.json"), error)
                    ? read_object(path("summary.json"), kSummarySchema)
                    : ordered_json{{"schema", kSummarySchema}, {groups, ordered_json::array()}};
  const int64_t count = groups_in(run.summary, groups, path("summary.json"));
  read_requests(path("requests.jsonl"), run, suite ? "configuration" : "level", count);
  return run;
}

}  // namespace shoal::runs
