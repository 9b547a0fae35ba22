// One run of `shoal bench serve`: a trial, levels of load, the run's folder and the tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::cli {

struct ServerLoadOptions {
  std::string url, api = "auto", format = "wav", texts = "medium";
  std::optional<std::string> model;  // absent: tts-1 on OpenAI's route, elsewhere none
  std::vector<std::string> voices, references, fields, headers;
  std::string fresh;  // "request", "level"; empty: clips are sent as they are
  std::string api_key, slo, cancel, slow_readers, output, ca_file, listen = "fast";
  std::vector<int> concurrency;  // empty: 1, 4, 16, or what `check` needs
  std::vector<double> rates;     // any: open loops
  std::optional<int64_t> requests, speech_seed, items;
  std::optional<double> duration_s;
  std::optional<int> warm_up;
  double timeout_s = 120, silence_db = -50;
  int pcm_rate_hz = 0;
  uint64_t seed = 1;
  bool keep_audio = false, check = false, sweep = false, compare = false;
  std::string single_url, multi_url;  // of a comparison, instead of `url`
};

// Throws Error: invalid_argument naming the option; already_exists; io; unavailable when the server cannot be
// reached, answers the trial with anything but sound, or answers no request, or breaks a promise; cancelled
// after an interruption. Whatever happens once the folder is there, its run.json tells.
void run_server_load(const ServerLoadOptions& options);
// The same load on single_url and then on multi_url, in two folders below `output`; then both side by side.
void compare_servers(const ServerLoadOptions& options);

}  // namespace shoal::cli
