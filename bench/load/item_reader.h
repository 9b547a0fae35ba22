// The answer of a batch: a line of JSON for each item, with its sound in base64, as the items end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/failure.h"
#include "bench/load/listener.h"

namespace shoal::load {

// The sounds of the items are heard one after the other. An item that fails does not end the others; it makes
// the request a failed one when all have ended.
class ItemReader {
 public:
  static constexpr std::string_view kContentType = "application/x-ndjson";

  // `listener` outlives it.
  ItemReader(Listener& listener, int64_t items) : listener_(listener), items_(items) {}

  // Bytes of the body that arrived at `at_us`.
  void take(std::string_view bytes, int64_t at_us);
  // The body is whole.
  void finish();

 private:
  void take_line(std::string_view line, int64_t at_us);

  Listener& listener_;
  const int64_t items_;
  std::string pending_;  // a line that is not whole
  int64_t ended_ = 0, spoken_ = 0;
  int rate_hz_ = 0;                 // that the items say
  std::optional<Failure> failure_;  // of the first item that failed
};

}  // namespace shoal::load
