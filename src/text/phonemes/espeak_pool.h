// espeak-ng for many threads: a few helper processes that come and go.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "text/phonemes/espeak_mapping.h"
#include "text/phonemes/espeak_process.h"
#include "text/phonemes/language.h"

namespace shoal::phonemes {

struct EspeakOptions {
  std::string program;    // shoal-phonemizer; empty: find_phonemizer()
  int helpers = 2;        // 1..64 processes at most, started when first needed
  int timeout_ms = 5000;  // 1..600000 for one answer, and to wait for a helper while all are busy
};

// The path of shoal-phonemizer: beside the running program, beside the library that holds this code, or in
// its build tree. Throws Error(unavailable) with what to install.
std::string find_phonemizer();

// Thread-safe. espeak-ng has one global state per process, must not be called by two threads, and is under
// the GPL: each helper is a separate process. A helper that dies is replaced and asked again once; one that
// hangs is killed and its text refused.
class EspeakPool {
 public:
  // Starts nothing yet. Throws Error(invalid_argument) for options outside their range.
  explicit EspeakPool(EspeakOptions options = {});
  ~EspeakPool();

  // A longer text is the caller's to split.
  static constexpr size_t kMaxTextBytes = 4096;

  // The pronunciation of each text by espeak-ng (well-formed UTF-8 without zero bytes, at most
  // kMaxTextBytes): IPA with U+0361 ties. Throws Error: invalid_argument (the text), unavailable (no program,
  // no espeak-ng, two deaths, a timeout), unsupported (espeak-ng has no such language), resource_exhausted
  // (all busy for timeout_ms).
  std::vector<std::string> to_ipa(Language language, std::span<const std::string> texts);

  // The same in Kokoro's phonemes.
  std::vector<std::string> phonemes(Language language, std::span<const std::string> texts);

  EspeakVersion version();    // starts a helper when none has run yet; throws as to_ipa does
  std::vector<pid_t> pids();  // of the helpers that run, for tests and status

 private:
  struct Helper {
    std::unique_ptr<EspeakProcess> process;
    std::string language;  // it spoke last
    bool busy = false;
  };
  class Lease;

  size_t lease(std::string_view language);
  void start_if_needed(Helper& helper);
  std::vector<std::string> ask(std::string_view language, std::span<const std::string> texts);

  EspeakOptions options_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Helper> helpers_;
  uint64_t tickets_ = 0;          // given so far
  std::deque<uint64_t> waiting_;  // for a helper, the longest first
  EspeakVersion version_;
  bool knows_version_ = false;
};

}  // namespace shoal::phonemes
