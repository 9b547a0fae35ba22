// Asks a server, for many users at once, in one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/load/exchange.h"
#include "bench/load/level_plan.h"
#include "bench/load/question.h"
#include "bench/load/request_record.h"
#include "bench/measure/samples.h"

namespace shoal::load {

struct GeneratorOptions {
  Target target;
  Question question;
  double silence = 0.003;   // Hearing::silence
  int pcm_rate_hz = 0;      // Hearing::pcm_rate_hz
  double timeout_s = 120;   // of a request, from its beginning to its last byte
  bool keep_audio = false;  // Hearing::keep
  std::string authorities;  // a file of certificates that https accepts; empty: the system's
};

struct LevelProgress {
  int64_t begun = 0, ended = 0;
  double elapsed_s = 0;
};

// Called on the thread of run(), about ten times a second; both may be empty.
struct LevelWatch {
  std::function<bool()> interrupted;  // true: ask no more, drop what is open
  std::function<void(const LevelProgress&)> on_progress;
};

// How the load program itself did. Its loop wakes every 10 ms; what it wakes late, requests wait too.
struct LevelRun {
  int64_t began_us = 0, ended_us = 0;
  bench::Percentiles loop_lag_ms;
  double cpu_share = 0;  // of one core
  int64_t most_open = 0;
  bool interrupted = false;
};

class Generator {
 public:
  // Finds the host's addresses, once. Throws Error: unavailable (no such host), not_found and
  // invalid_argument (the certificates).
  explicit Generator(GeneratorOptions options);
  ~Generator();

  // Returns when every request has ended; gives each to `on_end`. Connections are used again, also by the
  // next level.
  LevelRun run(const LevelPlan& plan, const std::function<void(RequestRecord&&)>& on_end,
               const LevelWatch& watch = {});

 private:
  struct Door;  // what levels share: the loop, the addresses, idle connections
  class Level;
  std::unique_ptr<Door> door_;
};

}  // namespace shoal::load
