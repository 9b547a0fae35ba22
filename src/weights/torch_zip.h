// Checkpoints written by torch.save: a zip archive of one pickle and one stored entry per storage.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "weights/tensor_location.h"

namespace shoal::weights {

// The tensors of the top-level dict (or of its "state_dict", when it has one), in its order; values that are
// not tensors are skipped. A dict without tensors of its own may hold parts, each a dict of tensors: theirs
// are named "part.tensor". Nothing in the file is ever executed: the pickle is read as data
// (pickle.h). `name` is for messages. Throws Error: corrupt_file, unsupported (compressed or encrypted
// entries, big endian, constructors or opcodes off the list, overlapping strides), too_large.
std::vector<TensorLocation> parse_torch_zip(std::span<const std::byte> file, std::string_view name);

// A file whose pickle is one tensor and no dict (the official voices); it is named "tensor". Throws
// as above.
TensorLocation parse_torch_tensor(std::span<const std::byte> file, std::string_view name);

}  // namespace shoal::weights
