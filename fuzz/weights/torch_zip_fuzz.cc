// Any bytes as a torch.save archive: the parser returns tensors inside the file, or throws shoal::Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "weights/torch_zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  try {
    int64_t copied = 0;
    for (const shoal::weights::TensorLocation& tensor : shoal::weights::parse_torch_zip(file, "fuzz")) {
      copied += tensor.bytes();
      if (copied > static_cast<int64_t>(4 * size)) break;  // many tensors may share a storage
      shoal::weights::copy_dense(file, tensor);  // reads every element: the sanitizer sees one outside
    }
  } catch (const shoal::Error&) {
  }
  try {
    shoal::weights::copy_dense(file, shoal::weights::parse_torch_tensor(file, "fuzz"));
  } catch (const shoal::Error&) {
  }
  return 0;
}
