// The frames of the Wyoming protocol: a JSON object in one line, then data_length bytes of a further JSON
// object, then payload_length bytes of anything. (Facts: the protocol's description,
// github.com/OHF-Voice/wyoming.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/body/value.h"

namespace shoal::server {

struct WyomingEvent {
  std::string type;
  Value data{Value::Object{}};  // of the line, and over it that of the part behind the line
  std::optional<Error> wrong;   // why it cannot be understood, although its end is known
};

struct WyomingLimits {
  size_t line_bytes = 1 << 20, data_bytes = 1 << 20;
  int64_t payload_bytes = 1 << 20;  // dropped as it comes: nobody speaks to us in sound
};

// Events do not depend on how their bytes were cut into pieces.
class WyomingReader {
 public:
  explicit WyomingReader(WyomingLimits limits = {}) : limits_(limits) {}

  // To be followed by next() until it is absent, so that payloads are not kept.
  void add(std::string_view bytes);
  // The next whole event; absent: bytes are missing. Throws Error(invalid_argument, too_large) when it is
  // unknown where the event ends, or it is too large: nothing that follows can be read.
  std::optional<WyomingEvent> next();
  // An event has begun and lacks bytes, or waits for next().
  bool within_event() const { return has_head_ || buffered_bytes() > 0; }
  size_t buffered_bytes() const { return buffer_.size() - start_; }

 private:
  bool read_head();
  bool read_data();
  bool drop_payload();
  void drop(size_t bytes);

  const WyomingLimits limits_;
  std::string buffer_;
  size_t start_ = 0;     // of what has not been used
  size_t searched_ = 0;  // bytes behind start_ without the end of a line
  bool has_head_ = false;
  WyomingEvent event_;  // whose line has been read
  size_t data_left_ = 0;
  int64_t payload_left_ = 0;
};

// An event to send. data: an object, behind the line.
std::string wyoming_event(std::string_view type, const Value& data = {}, std::string_view payload = {});

}  // namespace shoal::server
