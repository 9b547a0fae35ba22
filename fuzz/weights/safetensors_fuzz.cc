// Any bytes as a safetensors file: the parser returns tensors inside the file, or throws shoal::Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  try {
    for (const shoal::weights::TensorLocation& tensor : shoal::weights::parse_safetensors(file, "fuzz")) {
      shoal::weights::copy_dense(file, tensor);  // reads every element: the sanitizer sees one outside
    }
  } catch (const shoal::Error&) {
  }
  return 0;
}
