// A run on disk: run.json, requests.jsonl, summary.json, summary.csv. docs/BENCH.md has the schema.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shoal::runs {

// `path`, or for an empty one shoal-bench-DATE-TIME here. Throws Error(already_exists): it holds something.
std::string unused_folder(const std::string& path);

class RunFolder {
 public:
  // Makes the folder unused_folder(path). `run`: what run.json says at first, after its schema and beginning;
  // its "outcome" is "running" until end(). Throws Error: already_exists (a folder that holds something is
  // left alone), io.
  RunFolder(const std::string& path, const nlohmann::ordered_json& run);
  ~RunFolder();

  const std::string& path() const { return path_; }
  // One more member of run.json, which is written anew. Throws Error(io).
  void add_to_run(const std::string& name, const nlohmann::ordered_json& value);
  void add_request(const nlohmann::ordered_json& request);
  // Replaces the summaries: the schema, `members`, and what add_to_summary() got; `csv` beside it. Throws
  // Error(io).
  void write_summary(const nlohmann::ordered_json& members, const std::string& csv);
  // One more member of summary.json from the next write_summary() on; `value` is JSON.
  void add_to_summary(const std::string& name, const nlohmann::ordered_json& value);
  // outcome: "completed", "failed", "interrupted". error: empty, or why. Throws Error(io).
  void end(const std::string& outcome, const std::string& error);

 private:
  void write(const std::string& name, const std::string& text) const;

  std::string path_;
  std::string run_;  // JSON
  std::map<std::string, std::string> of_summary_;
  std::ofstream requests_;
};

}  // namespace shoal::runs
