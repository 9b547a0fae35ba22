// Arbitrary bytes as a JSON body.
#include <cstddef>
#include <cstdint>

#include "read_and_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  shoal::server::read_and_rewrite([&] { return shoal::server::read_json(body); }, shoal::server::write_json,
                                  shoal::server::read_json);
  return 0;
}
