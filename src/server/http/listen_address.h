// Where to listen.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace shoal::server {

// "127.0.0.1:8080", "localhost:0", "[::1]:8080". Names are looked up. Throws Error(invalid_argument) naming
// `listen`, Error(io) for an unknown name.
boost::asio::ip::tcp::endpoint parse_listen_address(const std::string& listen);

}  // namespace shoal::server
