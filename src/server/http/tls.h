// Certificate and key of the server.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace shoal::server {

// TLS 1.2 and 1.3, forward secret and with authenticated encryption alone. Throws Error(not_found) for a file
// that is not there, Error(io) for one that cannot be read and Error(invalid_argument) for one that is no PEM
// certificate chain or key without a password, and for a key of another certificate.
std::unique_ptr<boost::asio::ssl::context> make_tls(const std::string& certificate_path,
                                                    const std::string& key_path);

}  // namespace shoal::server
