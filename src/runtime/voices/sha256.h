// SHA-256, piece by piece (OpenSSL).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shoal::runtime {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();  // throws Error(internal) when the library refuses
  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text) { return update(std::as_bytes(std::span(text))); }
  Digest finish();  // once

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// Lower-case hexadecimal digits, two a byte.
std::string hex_digits(std::span<const uint8_t> bytes);

}  // namespace shoal::runtime
