#include "runtime/voices/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace shoal::runtime {
namespace {

EVP_MD_CTX* as_context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(as_context(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ && EVP_DigestInit_ex(as_context(context_.get()), EVP_sha256(), nullptr) == 1,
        "SHA-256 is not available");
}

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(as_context(context_.get()), bytes.data(), bytes.size()) == 1, "SHA-256 failed");
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  CHECK(EVP_DigestFinal_ex(as_context(context_.get()), digest.data(), nullptr) == 1, "SHA-256 failed");
  return digest;
}

std::string hex_digits(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace shoal::runtime
