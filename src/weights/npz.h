// Archives written by numpy.savez: one stored entry NAME.npy for each array.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "weights/tensor_location.h"

namespace shoal::weights {

// Whether the zip archive is one of arrays and not, say, of torch.save. Throws as read_zip_directory does.
bool is_npz(std::span<const std::byte> file, std::string_view name);

// The arrays in the order of the archive, named without ".npy". The data of an entry starts wherever the
// archive put it, so few are aligned. Read are: .npy versions 1.0 and 2.0, little-endian float32, C order;
// entries of other names are refused. `name` is for messages. Throws Error: corrupt_file, unsupported
// (compressed archives, other versions, types or orders), too_large.
std::vector<TensorLocation> parse_npz(std::span<const std::byte> file, std::string_view name);

}  // namespace shoal::weights
