// Which codec encoded a clip.
#pragma once

#include <string>
#include <string_view>

#include "models/dac/config.h"
#include "tensor/formats.h"

namespace shoal::runtime {

// 32 hexadecimal digits from the file's size and blocks of 4 KiB spread evenly over it (first and last among
// them), the configuration, and the format of the matrices: other weights, other codes. Throws Error:
// not_found, io.
std::string codec_fingerprint(const std::string& codec_path, const dac::Config& config, MatrixFormat format);

}  // namespace shoal::runtime
