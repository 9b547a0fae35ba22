// Answers of a server under load: for any bytes the record is consistent, and does not depend on how the
// bytes were cut.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/load/exchange.h"
#include "bench/load/request_figures.h"

namespace {

using namespace shoal::load;

void require(bool condition) {
  if (!condition) std::abort();
}

RequestRecord record_of(const Hearing& hearing, std::string_view bytes, size_t part_bytes) {
  RequestRecord record;
  Exchange exchange(hearing, record);
  int64_t at_us = 0;
  bool done = false;
  while (!bytes.empty() && !done) {
    done = exchange.take(bytes.substr(0, part_bytes), ++at_us);
    bytes.remove_prefix(std::min(bytes.size(), part_bytes));
  }
  exchange.end(++at_us, Exchange::End::closed, "closed");
  require(record.end_us > 0 && (record.outcome == Outcome::failed) == record.failure.has_value());
  int64_t frames = 0;
  for (const Piece& piece : record.pieces) {
    require(piece.frames > 0);
    frames += piece.frames;
  }
  require(record.outcome != Outcome::completed || frames > 0);
  require(record.first_audible_frame < std::max<int64_t>(frames, 1) || record.failure);
  figures_of(record);
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const Hearing hearing{.container = static_cast<Container>(data[0] % 3),
                        .pcm_rate_hz = data[0] & 4 ? 24'000 : 0,
                        .items = data[0] & 32 ? 2 : 0};
  // A head of its own, or one that lets the rest be sound.
  std::string bytes = data[0] & 8    ? ""
                      : data[0] & 32 ? "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
                      : data[0] & 16
                          ? "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n\r\n"
                          : "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nX-Sample-Rate: 24000\r\n\r\n";
  bytes.append(reinterpret_cast<const char*>(data) + 2, size - 2);
  const RequestRecord whole = record_of(hearing, bytes, bytes.size());
  const RequestRecord parts = record_of(hearing, bytes, 1 + data[1] % 64);
  require(whole.outcome == parts.outcome && whole.status == parts.status);
  if (whole.failure) return 0;  // which of several faults is met first may depend on the cut
  require(whole.checksum == parts.checksum && whole.first_audible_frame == parts.first_audible_frame &&
          whole.body_bytes == parts.body_bytes);
  return 0;
}
