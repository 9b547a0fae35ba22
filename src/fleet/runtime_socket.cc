#include "fleet/runtime_socket.h"

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
  // A worker that is let in is ready: HAProxy need not find it out by a check of its own first.
  const std::string server = concat("set server workers/", worker);
  const std::optional<std::string> answer =
      ask(concat(server, in ? concat(" state ready;", server, " health up") : " state drain"));
  // An empty line for each command means that it was done; anything else is a complaint.
  return answer && answer->find_first_not_of('\n') == std::string::npos;
}

bool RuntimeSocket::replace_certificate(const std::string& name, const std::string& pem) const {
  std::string lines;  // an empty one would end them
  for (const char c : pem)
    if (c != '\r' && (c != '\n' || !lines.ends_with('\n'))) lines += c;
  const auto taken = ask(concat("set ssl cert ", name, " <<\n", lines, "\n"));
  if (!taken || taken->find("created") == std::string::npos) return false;
  const auto committed = ask(concat("commit ssl cert ", name));
  return committed && committed->find("Success") != std::string::npos;
}

std::optional<std::string> RuntimeSocket::ask(const std::string& commands) const {
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 1};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_un address{.sun_family = AF_UNIX};
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  const std::string bytes = commands + "\n";
  const bool sent =
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  std::string answer;
  char piece[512];
  ssize_t count = sent ? 1 : -1;
  while (count > 0 && (count = recv(connection, piece, sizeof piece, 0)) > 0)
    answer.append(piece, static_cast<size_t>(count));
  close(connection);
  return count == 0 ? std::optional(answer) : std::nullopt;
}

}  // namespace shoal::fleet
