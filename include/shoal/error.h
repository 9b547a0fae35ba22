// The one exception type of Shoal.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace shoal {

// What kind of failure it was. Turned into an exit code (cli) or an HTTP status (server) in one place each.
enum class ErrorCode {
  invalid_argument,    // the caller's value is wrong: field, expected, got
  not_found,           // a file, voice or tensor that was named does not exist
  already_exists,      // the name is taken
  unsupported,         // well-formed, but not something this build can do
  corrupt_file,        // a file's bytes contradict its format or themselves
  too_large,           // over a stated limit
  cancelled,           // the caller went away
  deadline_exceeded,   // the caller's time was up
  resource_exhausted,  // memory, disk or a queue is full
  io,                  // the operating system refused a read or a write
  unavailable,         // no such device, or not ready
  internal,            // our fault
};

// "invalid_argument", ... : stable names for logs and JSON.
std::string_view name_of(ErrorCode code);

// True when the caller (the person, the file they gave) is at fault rather than the program or the machine.
bool is_callers_fault(ErrorCode code);

// Thrown by every layer. The message is one sentence that names the field or op, what was expected, and what
// was found.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

}  // namespace shoal
