// One address that a Wyoming listener listens at.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <string>
#include <sys/types.h>

#include "server/wyoming/socket.h"
#include "shoal/server_config.h"

namespace shoal::server {

class WyomingDoor {
 public:
  // Binds and listens. Throws Error(io) with the address and why, Error(invalid_argument).
  WyomingDoor(Executor executor, const WyomingAddress& address);
  ~WyomingDoor() { close(); }
  WyomingDoor(const WyomingDoor&) = delete;
  WyomingDoor& operator=(const WyomingDoor&) = delete;

  boost::asio::basic_socket_acceptor<AnyStream, Executor>& acceptor() { return acceptor_; }
  const std::string& name() const { return name_; }  // "tcp://127.0.0.1:10200", "unix:///run/w.sock"
  // Once is enough. Removes the file of a UNIX socket unless another program has replaced it.
  void close();

 private:
  void open(const AnyStream::endpoint& endpoint);
  void open_path(const std::string& path);
  [[noreturn]] void refuse(const std::string& why) const;

  boost::asio::basic_socket_acceptor<AnyStream, Executor> acceptor_;
  std::string name_, path_;
  dev_t device_ = 0;  // of the file
  ino_t inode_ = 0;
};

// "192.168.1.7", "::1"; "unix". And options for a socket that was accepted.
std::string prepare_accepted(WyomingStream& socket);

}  // namespace shoal::server
