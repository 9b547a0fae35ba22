// Compressed bodies: for any bytes the output is bounded by the input, and does not depend on how the bytes
// were cut.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/body_decoder.h"

namespace {

using shoal::server::BodyDecoder;

constexpr size_t kMostBytes = 3 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  BodyDecoder::Result result = BodyDecoder::Result::good;
  bool ended = false;
  std::string text;
};

Outcome decode(BodyDecoder::Coding coding, std::string_view bytes, size_t part_bytes) {
  BodyDecoder decoder(coding);
  Outcome outcome;
  const auto take = [&](std::string_view piece) {
    require(!piece.empty() && piece.size() <= 64 << 10);
    outcome.text += piece;
    return outcome.text.size() <= kMostBytes;
  };
  size_t fed = 0;
  while (!bytes.empty() && outcome.result == BodyDecoder::Result::good) {
    const std::string_view part = bytes.substr(0, part_bytes);
    bytes.remove_prefix(part.size());
    fed += part.size();
    outcome.result = decoder.feed(part, take);
    require(outcome.text.size() <= BodyDecoder::kFreeBytes + BodyDecoder::kMostFactor * fed);
  }
  outcome.ended = decoder.ended();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto coding = data[0] % 2 == 0 ? BodyDecoder::Coding::gzip : BodyDecoder::Coding::deflate;
  const Outcome whole = decode(coding, bytes, bytes.size());
  const Outcome parts = decode(coding, bytes, 1 + data[1] % 64);
  // A bomb may be detected in another piece of the output.
  if (whole.result == BodyDecoder::Result::good) require(parts.result == BodyDecoder::Result::good);
  if (whole.result != BodyDecoder::Result::good) return 0;
  require(whole.text == parts.text && whole.ended == parts.ended);
  return 0;
}
