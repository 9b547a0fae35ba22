#include "bench/runs/run_folder.h"

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/runs/schema.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;

std::string utc(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

bool holds_something(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) &&
         (!std::filesystem::is_directory(path, error) || !std::filesystem::is_empty(path, error));
}

std::string free_name() {
  const std::string name = "shoal-bench-" + utc("%Y%m%d-%H%M%S");
  std::string free = name;
  for (int i = 2; std::filesystem::exists(free); ++i) free = concat(name, "-", i);
  return free;
}

std::string text_of(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string unused_folder(const std::string& path) {
  if (path.empty()) return free_name();
  if (holds_something(path))
    fail(ErrorCode::already_exists, "output: ", path, ": holds something already; a run never overwrites");
  return path;
}

RunFolder::RunFolder(const std::string& path, const ordered_json& run) : path_(unused_folder(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) fail(ErrorCode::io, "output: ", path_, ": ", error.message());
  ordered_json begun = {{"schema", kRunSchema}, {"began_at", utc("%Y-%m-%dT%H:%M:%SZ")}};
  begun.update(run);
  begun["outcome"] = "running";
  run_ = begun.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  write("run.json", text_of(begun, 1));
  requests_.open(path_ + "/requests.jsonl");
  if (!requests_) fail(ErrorCode::io, path_, "/requests.jsonl: cannot be written");
}

RunFolder::~RunFolder() = default;

void RunFolder::add_to_run(const std::string& name, const ordered_json& value) {
  ordered_json run = ordered_json::parse(run_);
  run[name] = value;
  run_ = run.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  write("run.json", text_of(run, 1));
}

void RunFolder::add_request(const ordered_json& request) { requests_ << text_of(request, -1); }

void RunFolder::write_summary(const ordered_json& members, const std::string& csv) {
  ordered_json summary = {{"schema", kSummarySchema}};
  summary.update(members);
  for (const auto& [name, value] : of_summary_) summary[name] = ordered_json::parse(value);
  write("summary.json", text_of(summary, 1));
  write("summary.csv", csv);
}

void RunFolder::add_to_summary(const std::string& name, const ordered_json& value) {
  of_summary_[name] = value.dump();
}

void RunFolder::end(const std::string& outcome, const std::string& error) {
  ordered_json run = ordered_json::parse(run_);
  run["outcome"] = outcome;
  if (!error.empty()) run["error"] = error;
  run["ended_at"] = utc("%Y-%m-%dT%H:%M:%SZ");
  write("run.json", text_of(run, 1));
  requests_.close();
  if (!requests_) fail(ErrorCode::io, path_, "/requests.jsonl: cannot be written");
}

void RunFolder::write(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) fail(ErrorCode::io, path, ": cannot be written");
}

}  // namespace shoal::runs
