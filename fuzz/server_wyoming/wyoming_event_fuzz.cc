// Arbitrary bytes as events of the Wyoming protocol: cut anywhere they are the same events, and what is kept
// is bounded.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "server/wyoming/event_reader.h"
#include "server/wyoming/requests.h"

namespace {

using namespace shoal::server;

std::string read_in_pieces(std::string_view bytes, size_t piece) {
  constexpr WyomingLimits kLimits{.line_bytes = 256, .data_bytes = 128, .payload_bytes = 512};
  WyomingReader reader(kLimits);
  std::string all;
  try {
    while (!bytes.empty()) {
      const std::string_view next = bytes.substr(0, piece);
      bytes.remove_prefix(next.size());
      reader.add(next);
      while (const auto event = reader.next()) {
        all += event->type + write_json(event->data) + (event->wrong ? event->wrong->message() : "");
        for (auto* read : {read_synthesize, read_synthesize_start}) {
          try {
            all += read(event->data).text;
          } catch (const shoal::Error&) {
          }
        }
      }
      if (reader.buffered_bytes() > kLimits.line_bytes + kLimits.data_bytes) std::abort();
    }
  } catch (const shoal::Error& error) {
    all += error.message();
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (read_in_pieces(bytes, 1) != read_in_pieces(bytes, 1 + data[0])) std::abort();
  return 0;
}
