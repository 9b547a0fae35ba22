// Arbitrary bytes as forms: the first byte chooses the kind, a first line may hold the Content-Type.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "read_and_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shoal::server::Value;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto read = [&]() -> Value {
    if (data[0] != 't') return shoal::server::read_form(body, "X");
    const std::string_view type = body.substr(0, body.find('\n'));
    return shoal::server::read_body(type, body.substr(std::min(type.size() + 1, body.size())));
  };
  shoal::server::read_and_rewrite(read, shoal::server::write_msgpack, shoal::server::read_msgpack);
  return 0;
}
