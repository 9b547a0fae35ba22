// The socket through which HAProxy is told what changes while it runs.
#pragma once

#include <optional>
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
  std::string ready_path() const { return folder_ + "/ready"; }  // for BalancerPlan::ready_socket
  // Whether `worker` gets requests; those that it has go on in any case. One that is let in must be ready.
  // Waits a second at most; false: HAProxy did not take it.
  bool let_in(const std::string& worker, bool in) const;
  // The certificate of BalancerPlan, for connections from now on; false: HAProxy did not take it.
  bool replace_certificate(const std::string& name, const std::string& pem) const;
  // What it answers to commands; nothing if it does not within a second.
  std::optional<std::string> ask(const std::string& commands) const;

 private:
  std::string folder_;
};

}  // namespace shoal::fleet
