// Arbitrary bytes as a MessagePack body.
#include <cstddef>
#include <cstdint>

#include "read_and_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  shoal::server::read_and_rewrite([&] { return shoal::server::read_msgpack(body); },
                                  shoal::server::write_msgpack, shoal::server::read_msgpack);
  return 0;
}
