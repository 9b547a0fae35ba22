#include "server/http/tls.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <openssl/ssl.h>

#include "base/error.h"

namespace shoal::server {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

void require_readable(const std::string& field, const std::string& path) {
  errno = 0;
  if (std::ifstream(path).good()) return;
  const int reason = errno;
  fail(reason == ENOENT ? ErrorCode::not_found : ErrorCode::io, field, ": ", path, ": ",
       reason == 0 ? "cannot be read" : std::strerror(reason));
}

}  // namespace

std::unique_ptr<ssl::context> make_tls(const std::string& certificate_path, const std::string& key_path) {
  require_readable("tls_certificate", certificate_path);
  require_readable("tls_key", key_path);
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // TLS 1.3 has only such ciphers: forward secrecy, and authenticated encryption.
  CHECK(SSL_CTX_set_cipher_list(context->native_handle(), "ECDHE+AESGCM:ECDHE+CHACHA20") == 1,
        "OpenSSL knows the ciphers of TLS 1.2");
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Without it OpenSSL asks at the terminal.
  error_code error;
  context->set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); }, error);
  if (!error) context->use_certificate_chain_file(certificate_path, error);
  if (error)
    fail(ErrorCode::invalid_argument, "tls_certificate: ", certificate_path,
         ": expected a chain of certificates in PEM, got: ", error.message());
  context->use_private_key_file(key_path, ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context->native_handle()) != 1)
    fail(ErrorCode::invalid_argument, "tls_key: ", key_path, ": expected the key of ", certificate_path,
         " in PEM, without a password", error ? concat(", got: ", error.message()) : "");
  return context;
}

}  // namespace shoal::server
