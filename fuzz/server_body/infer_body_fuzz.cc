// Arbitrary bytes as a request of the open inference protocol: a first line is the length of its JSON, if it
// is not empty.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "server/body/infer_body.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view length = all.substr(0, line), body = all.substr(line + 1);
  try {
    const server::InferBody read = server::read_infer_body(body, line ? std::optional(length) : std::nullopt);
    size_t bytes = 0;
    for (const server::InferInput& input : read.inputs) {
      int64_t count = 1;
      for (const int64_t size_of_one : input.shape) count *= size_of_one;
      CHECK(std::cmp_equal(input.elements.size(), count), "a shape of another size");
      for (const std::string& element : input.elements) bytes += element.size();
    }
    CHECK(bytes <= body.size(), "more bytes than came");
  } catch (const server::BodyError&) {
  }
  return 0;
}
