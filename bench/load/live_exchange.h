// One utterance on our WebSocket while it arrives: messages and their times in, a record out (docs/LIVE.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/load/listener.h"

namespace shoal::load {

class LiveExchange {
 public:
  // `record` outlives it.
  LiveExchange(const Hearing& hearing, RequestRecord& record) : record_(record), listener_(hearing, record) {}
  LiveExchange(const LiveExchange&) = delete;
  LiveExchange& operator=(const LiveExchange&) = delete;

  // A piece of a binary message. Here and below: true once nothing more is wanted.
  bool take_sound(std::string_view bytes, int64_t at_us);
  // A whole text message.
  bool take_message(std::string_view json, int64_t at_us);
  // The connection has ended; `why` tells.
  void end(int64_t at_us, const std::string& why);
  // Ends it with this failure, unless it has ended.
  void fail_with(int64_t at_us, Failure failure);
  double heard_s() const { return listener_.heard_s(); }
  // The connection can carry another utterance.
  bool can_go_on() const { return done_; }

 private:
  bool arrived(int64_t at_us);

  RequestRecord& record_;
  Listener listener_;
  bool started_ = false, done_ = false;
};

}  // namespace shoal::load
