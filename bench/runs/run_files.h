// The folder of a run, read back.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shoal::runs {

// A line of requests.jsonl, as far as a report draws it.
struct Request {
  int64_t group = 0;  // of the summary's "levels" or "configurations"
  std::string outcome, text, phase;
  bool slow = false;
  double due_s = 0;
  std::optional<double> first_audible_ms, latency_ms;  // absent: null in the file
};

struct StoredRun {
  std::string name;  // of the folder
  nlohmann::ordered_json run;
  nlohmann::ordered_json summary;  // an empty "levels" if the run ended before its first
  std::vector<Request> requests;
  bool cut_off = false;  // the last line of requests.jsonl has no end: the program was killed
};

// Reads a folder that RunFolder wrote; nothing in it is trusted. Throws Error with one sentence: not_found
// (no folder, or not that of a run), corrupt_file (with the line), invalid_argument (schemas that this
// program does not know), too_large (files over 64 MiB, lines over 1 MiB, more than four million requests),
// io.
StoredRun read_run(const std::string& folder);

}  // namespace shoal::runs
