#include "fleet/runtime_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

namespace shoal::fleet {

RuntimeSocket::RuntimeSocket() {
  // An address of a socket has 107 characters at most, and $TMPDIR may have more.
  char folder[] = "/tmp/shoal_fleet_XXXXXX";
  if (mkdtemp(folder) == nullptr) fail(ErrorCode::io, folder, ": cannot be made: ", std::strerror(errno));
  folder_ = folder;
}

RuntimeSocket::~RuntimeSocket() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool RuntimeSocket::let_in(const std::string& worker, bool in) const {
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 1};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_un address{.sun_family = AF_UNIX};
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  // A worker that is let in is ready: HAProxy need not find it out by a check of its own first.
  const std::string server = concat("set server workers/", worker);
  const std::string command =
      concat(server, in ? concat(" state ready;", server, " health up") : " state drain", "\n");
  bool taken =
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(connection, command.data(), command.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(command.size());
  // An empty line for each command means that it was done; anything else is a complaint.
  char answer[256];
  ssize_t count = 0;
  while (taken && (count = recv(connection, answer, sizeof answer, 0)) > 0)
    taken = std::all_of(answer, answer + count, [](char c) { return c == '\n'; });
  taken = taken && count == 0;
  close(connection);
  return taken;
}

}  // namespace shoal::fleet
