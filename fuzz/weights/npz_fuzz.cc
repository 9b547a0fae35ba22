// Any bytes as an archive of arrays: the parser returns tensors inside the file, or throws shoal::Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "weights/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  try {
    for (const shoal::weights::TensorLocation& array : shoal::weights::parse_npz(file, "fuzz")) {
      shoal::weights::copy_dense(file, array);  // reads every element: the sanitizer sees one outside
    }
  } catch (const shoal::Error&) {
  }
  return 0;
}
