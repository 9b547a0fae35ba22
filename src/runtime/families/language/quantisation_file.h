// How the files of a quantised model folder are written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "runtime/voices/new_file.h"
#include "shoal/quantise.h"
#include "tensor/tensor.h"

namespace shoal::runtime {

// Told after each piece. Throws Error(cancelled) when the caller stops the work.
struct QuantisingProgress {
  const QuantiseProgress& tell;
  int64_t total, done = 0;  // bytes read

  void add(int64_t bytes, const std::string& at) {
    done += bytes;
    if (tell && !tell(static_cast<double>(done) / static_cast<double>(total), at))
      fail(ErrorCode::cancelled, "quantise: interrupted");
  }
};

inline std::span<const std::byte> bytes_of(TensorView view) {
  return {static_cast<const std::byte*>(view.data()), static_cast<size_t>(view.bytes())};
}

// In pieces, each of which is given back to `from` (release_pages) when it is written.
template <typename Source>
void copy_bytes(const Source& from, std::span<const std::byte> bytes, Output& file, int64_t offset,
                const std::string& name, QuantisingProgress& progress) {
  constexpr size_t kPieceBytes = size_t{32} << 20;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    file.write(offset, piece);
    from.release_pages();
    bytes = bytes.subspan(piece.size());
    offset += std::ssize(piece);
    progress.add(std::ssize(piece), name);
  }
}

}  // namespace shoal::runtime
