// The safetensors format: 8 bytes header length (little endian), a JSON header, the data.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "weights/tensor_location.h"

namespace shoal::weights {

// The tensors of a file, in the order of its header. `name` is for messages. As strict as the format's own
// reader, and with a smaller limit: a header of at most 16 MiB; data_offsets equal to shape * dtype; the
// tensors, sorted by offset, cover the data exactly, so neither holes, nor overlaps, nor trailing bytes.
// "__metadata__" is ignored. Throws Error: corrupt_file, too_large, unsupported (dtype or rank that no model
// of ours has).
std::vector<TensorLocation> parse_safetensors(std::span<const std::byte> file, std::string_view name);

}  // namespace shoal::weights
