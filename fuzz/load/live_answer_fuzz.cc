// Messages of a server on its WebSocket, under load: for any of them the record is consistent.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench/load/live_exchange.h"
#include "bench/load/request_figures.h"

namespace {

using namespace shoal::load;

void demand(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

// A line that begins with 'S' is sound, any other a text message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  RequestRecord record;
  LiveExchange exchange({.container = data[0] % 2 == 0 ? Container::pcm : Container::wav, .keep = true},
                        record);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  int64_t at_us = 0;
  bool done = false;
  while (!rest.empty() && !done) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    done = line.starts_with('S') ? exchange.take_sound(line.substr(1), ++at_us)
                                 : exchange.take_message(line, ++at_us);
  }
  exchange.end(++at_us, "closed");
  demand(record.end_us > 0 && (record.outcome == Outcome::failed) == record.failure.has_value());
  demand(record.outcome != Outcome::completed || !record.pieces.empty());
  for (const Piece& piece : record.pieces) demand(piece.frames > 0);
  figures_of(record);
  return 0;
}
