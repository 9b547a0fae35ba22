// One running shoal-phonemizer.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "text/phonemes/espeak_protocol.h"

namespace shoal::phonemes {

// A child process and the socket that is its standard input and output. Used by one thread at a time.
class EspeakProcess {
 public:
  // Starts the program (not through a shell; it inherits only the socket) and reads its first message. Throws
  // Error(unavailable): the program is missing or cannot work, with what to install.
  EspeakProcess(const std::string& program, int timeout_ms);
  ~EspeakProcess();  // ends the child, by force when it does not end by itself
  EspeakProcess(const EspeakProcess&) = delete;
  EspeakProcess& operator=(const EspeakProcess&) = delete;

  enum class Outcome { answered, died, timed_out };
  // Sends a message and waits for its answer. After any outcome but `answered` the process cannot be used any
  // more.
  Outcome exchange(const Message& request, Message& answer, int timeout_ms);

  pid_t pid() const { return pid_; }
  const std::string& version_text() const { return version_; }  // as espeak-ng says it: "1.51"

 private:
  Outcome send(std::string_view bytes, int64_t deadline_us);
  Outcome receive(std::string& bytes, size_t count, int64_t deadline_us);
  Outcome receive_message(Message& message, int64_t deadline_us);
  std::string end();  // how it ended: "exit code 127"

  int patience_ms_ = 200;  // for the child to end by itself when its input has ended
  int socket_ = -1;
  pid_t pid_ = -1;
  std::string version_;
};

}  // namespace shoal::phonemes
