// What speaking in one configuration came to.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/measure/samples.h"
#include "shoal/speech.h"

namespace shoal::suite {

enum class Phase { warm_up, sample, batch };

// One request, alone in the engine.
struct Spoken {
  Phase phase = Phase::sample;
  std::string text;  // its name: "short"
  int64_t characters = 0;
  double due_s = 0;  // since the suite began
  SpeechSummary summary;
};

struct Memory {
  bool of_device = false;  // of the GPU; otherwise the process's resident memory
  int64_t rest_bytes = 0;  // loaded and ready, before the first request
  int64_t peak_bytes = 0;  // the most while it spoke
};

struct Times {
  int64_t characters = 0;  // of a text
  bench::Samples latency_ms, first_audio_ms, real_time_factor;
};

// Samples count in the figures of requests; a batch, requests in a row, by its throughput; a warm-up by its
// time alone.
class ConfigurationFigures {
 public:
  std::string title, model, precision, device;
  bool has_tokens = false;  // a frame is one semantic token
  double load_s = 0;
  Memory memory;
  double batch_s = 0;  // from the first of the batch to the end of the last

  void add(const Spoken& spoken);
  // Members of "configurations" in summary.json; docs/BENCH.md describes them.
  nlohmann::ordered_json json() const;
  // For people, each line indented.
  std::string lines() const;

 private:
  // Seconds of sound for a second of work: of the batch, or without one of the samples.
  double capacity() const;

  Times all_;
  bench::Samples tokens_per_s_;
  std::vector<std::pair<std::string, Times>> texts_;  // in the order in which they came
  std::vector<double> warm_up_ms_;
  int64_t batch_requests_ = 0;
  double sample_sound_s_ = 0, sample_s_ = 0, batch_sound_s_ = 0;
};

// A line of requests.jsonl.
nlohmann::ordered_json json_of(const Spoken& spoken, size_t configuration);

// One line for each configuration, for people.
std::string table_of(const std::vector<ConfigurationFigures>& figures);

}  // namespace shoal::suite
