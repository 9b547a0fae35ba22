// Certificate and key of the server.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace shoal::server {

// TLS 1.2 and 1.3, only with forward secrecy and authenticated encryption. Throws Error(not_found) for a
// missing file, Error(io) for an unreadable one and Error(invalid_argument) for a file that is not a PEM
// certificate chain or a key without a password, and for the key of another certificate.
std::unique_ptr<boost::asio::ssl::context> make_tls(const std::string& certificate_path,
                                                    const std::string& key_path);

}  // namespace shoal::server
