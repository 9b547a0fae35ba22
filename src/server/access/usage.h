// How much each API key has used since the start, and what is left of its limits.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"
#include "shoal/error.h"

namespace shoal::server {

inline constexpr size_t kKeyLimits = 3;
struct KeyLimitKind {
  std::string_view name;    // in the key file and in /v1/usage
  std::string_view header;  // x-ratelimit-limit-NAME
  std::string_view words;   // "requests a minute"
  std::chrono::seconds window;
  bool of_requests = false;  // else of characters
};
extern const std::array<KeyLimitKind, kKeyLimits> kKeyLimitKinds;
// In the order of kKeyLimitKinds; 0: no limit.
using KeyLimits = std::array<int64_t, kKeyLimits>;

// A key has used up what it may: 429.
class OverLimit : public Error {
 public:
  OverLimit(std::string message, int retry_after_s)
      : Error(ErrorCode::resource_exhausted, std::move(message)), retry_after_s_(retry_after_s) {}
  int retry_after_s() const { return retry_after_s_; }

 private:
  int retry_after_s_;
};

struct KeyLimitState {
  const KeyLimitKind* kind = nullptr;
  int64_t limit = 0;
  int64_t left = 0;
  int64_t reset_s = 0;  // until all of it is left again
};

struct KeyUsage {
  std::string key;  // its name; empty: of a server without keys
  uint64_t requests = 0, characters = 0;
  double sound_s = 0;
  std::vector<KeyLimitState> limits;
};

// In memory, of this process alone. A window of a limit begins with its first use. Thread-safe.
class Usage {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  void set_limits(std::map<std::string, KeyLimits> limits);
  // A request that keeps a model busy. Throws OverLimit, and counts nothing then.
  void add_request(const std::string& key, Time now = Clock::now());
  // Characters that are about to be spoken. Throws OverLimit, or Error(too_large) for more than the key may
  // ever speak at once, and counts nothing then.
  void add_characters(const std::string& key, int64_t characters, Time now = Clock::now());
  // Characters that are not spoken after all.
  void give_back(const std::string& key, int64_t characters);
  void add_sound(const std::string& key, double sound_s);

  KeyUsage of(const std::string& key, Time now = Clock::now()) const;
  // Of keys that have been used, by name.
  std::vector<KeyUsage> all(Time now = Clock::now()) const;
  // What is left: x-ratelimit-limit-requests, -remaining-requests, -reset-requests ("12s"), and the same of
  // characters and characters-day; none for a key without limits.
  Headers headers(const std::string& key, Time now = Clock::now()) const;

 private:
  struct Window {
    Time since;
    int64_t used = 0;
  };
  struct Used {
    uint64_t requests = 0, characters = 0;
    double sound_s = 0;
    std::array<Window, kKeyLimits> windows;
  };

  void add(const std::string& key, bool requests, int64_t amount, Time now);
  KeyUsage told(const std::string& key, const Used& used, Time now) const;
  KeyLimits limits_of(const std::string& key) const;

  mutable std::mutex mutex_;
  std::map<std::string, KeyLimits> limits_;
  std::map<std::string, Used> used_;
};

}  // namespace shoal::server
