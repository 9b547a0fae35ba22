// What other threads hand to the decode loop.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/families/language/active_speech.h"
#include "shoal/error.h"

namespace shoal::runtime {

class SpeechInbox {
 public:
  // Why everything ends. The message is kept as a pointer.
  struct Stop {
    ErrorCode code = ErrorCode::unavailable;
    const char* message = "";
  };

  // Any thread. Throw std::bad_alloc, and nothing was put in.
  void put(std::shared_ptr<SpeechJob> job);
  void put(std::shared_ptr<PreparingSpeech> speech);
  // Any thread. The first reason counts.
  void stop(const Stop& stop);

  // Appends what came to `waiting` and `preparing`, and says whether everything must end. The decode loop's
  // thread. Throws std::bad_alloc: what was not appended is still here.
  std::optional<Stop> take(std::vector<std::shared_ptr<SpeechJob>>& waiting,
                           std::vector<std::shared_ptr<PreparingSpeech>>& preparing);

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<SpeechJob>> jobs_;
  std::vector<std::shared_ptr<PreparingSpeech>> preparing_;
  std::optional<Stop> stop_;
};

}  // namespace shoal::runtime
