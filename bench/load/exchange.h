// One HTTP answer while it arrives: bytes and their times in, a record out. Knows no sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/answer_reader.h"
#include "bench/load/item_reader.h"
#include "bench/load/listener.h"

namespace shoal::load {

class Exchange {
 public:
  // `record` outlives it.
  Exchange(const Hearing& hearing, RequestRecord& record);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Bytes of the socket that arrived at `at_us`. True once nothing more is wanted.
  bool take(std::string_view bytes, int64_t at_us);
  // The peer has closed the connection in order, or it broke; `why` tells. Only the first can be the end of
  // an answer whose length nobody has said.
  enum class End : uint8_t { closed, broken };
  void end(int64_t at_us, End how, const std::string& why);
  // Ends it with this failure, unless it has ended.
  void fail_with(int64_t at_us, Failure failure);
  double heard_s() const { return listener_.heard_s(); }  // seconds of sound so far
  // The connection can carry another request.
  bool can_go_on() const;

 private:
  void begin_body();
  void take_body(std::string_view bytes);
  bool is_wanted() const;  // by its status and its type
  void note_refusal();
  void finish(int64_t at_us);

  RequestRecord& record_;
  Listener listener_;
  AnswerReader answer_;
  std::optional<ItemReader> items_;  // of a batch
  int64_t now_us_ = 0;
  bool body_begun_ = false;
  std::string refusal_;  // the beginning of a body that is no sound
};

}  // namespace shoal::load
