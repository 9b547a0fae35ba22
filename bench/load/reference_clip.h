// A recording whose voice a server is asked to follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shoal::load {

class ReferenceClip {
 public:
  // `file`: bytes of a WAV file of 16-bit PCM with a fifth of a second or more; `words`: what is spoken in
  // it. `name` is for errors. Throws Error(invalid_argument).
  ReferenceClip(const std::string& file, std::string words, const std::string& name);

  // The file in base64. `newness`: the lowest bits of 64 samples in its middle become these, which nobody
  // hears, so that no server has met it; absent: as it is.
  std::string base64(std::optional<uint64_t> newness) const;
  const std::string& words() const { return words_; }

 private:
  std::string base64_, words_;
  std::string changing_;   // the bytes of the 64 samples, and a few more
  size_t changes_at_ = 0;  // their place in the file, a multiple of 3
};

// Of a file NAME.wav with its words beside it in NAME.lab or NAME.txt. Throws Error: not_found, io, too_large
// (over 32 MiB), invalid_argument.
ReferenceClip read_reference_clip(const std::string& path);

}  // namespace shoal::load
