// The socket through which HAProxy is told who gets requests while it runs.
#pragma once

#include <string>

namespace shoal::fleet {

// A path for it in a folder that only this user may enter; both go with this object. Throws Error(io).
class RuntimeSocket {
 public:
  RuntimeSocket();
  ~RuntimeSocket();
  RuntimeSocket(const RuntimeSocket&) = delete;
  RuntimeSocket& operator=(const RuntimeSocket&) = delete;

  std::string path() const { return folder_ + "/haproxy"; }
  // Whether `worker` gets requests; those that it has go on in any case. One that is let in must be ready.
  // Waits a second at most; false: HAProxy did not take it.
  bool let_in(const std::string& worker, bool in) const;

 private:
  std::string folder_;
};

}  // namespace shoal::fleet
