// The HAProxy in front of the workers: where it listens, whom it sends requests to, and why.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/child.h"
#include "fleet/host_list.h"
#include "fleet/memory_file.h"
#include "fleet/plan.h"

namespace shoal::fleet {

enum class Strategy {
  least_connections,
  round_robin,
  voice,  // requests for one voice go to one worker, whose prefix cache then knows it, unless that has 25 %
          // more than its share
};
// "least-connections", "round-robin", "voice". Throws Error(invalid_argument).
Strategy parse_strategy(std::string_view name);

// How the routes at some paths tell errors: bodies in JSON, in the format of HAProxy's logs.
struct Form {
  std::vector<std::string> paths;
  std::string full, absent;  // of 429, and of 503 when no worker is ready
};
// What stands in them for the request's id.
constexpr const char* kRequestId = "%[req.hdr(x-request-id)]";

struct BalancerPlan {
  std::string host = "127.0.0.1";  // IPv4
  int port = 8000;
  Strategy strategy = Strategy::least_connections;
  std::vector<WorkerPlan> workers;
  std::optional<std::vector<HostPlan>> hosts;  // of other machines; none: never any
  std::vector<std::string> repeatable;         // paths of POST that may be asked twice
  int fleet_port = 0;  // on 127.0.0.1, of what answers fleet_paths and below /v1/admin; 0: nothing
  std::vector<std::string> fleet_paths;
  int longest_answer_s = 600;  // that a worker may take before it sends anything
  std::string runtime_socket;  // path; empty: none
  std::string ready_socket;    // path, where it answers GET /ready too; empty: nowhere
  std::string certificate;  // PEM file of a certificate, those that vouch for it, and its key; empty: plain
  // Requests and WebSockets at the workers at once, waiting ones included: one more on a path of `forms` gets
  // 429. 0: any number.
  int most_inside = 0;
  std::vector<Form> forms;
  int grace_s = 30;  // of requests inside when the fleet ends
};

// Sets host and port from "127.0.0.1:8000". Throws Error(invalid_argument) naming `listen`.
void parse_balancer_address(const std::string& listen, BalancerPlan& plan);

// A whole configuration of HAProxy 2.6:
// - A request whose answer has not begun when its worker dies goes to another, if repeating it changes
//   nothing and it fits kRepeatableBytes. An answer that has begun ends where its worker ended: the client
//   sees the broken connection.
// - The queue is that of the workers: one that is full answers 429 itself, in the form of the route.
// - GET /ready on the balancer's address is 200 while a worker is ready.
std::string haproxy_config(const BalancerPlan& plan);
constexpr int kRepeatableBytes = 65536;  // head and body

// `name` as it is if it has a slash, otherwise from $PATH and the folders of system programs. Throws
// Error(invalid_argument) that says how to get it.
std::string find_haproxy(const std::string& name);

// Its program with a configuration: a file in memory that lives as long as this.
class Balancer {
 public:
  // Lets the program check the configuration. Throws Error(invalid_argument) with its reason.
  Balancer(std::string program, const std::string& config);

  Command command() const;
  // For its next process; not checked.
  void replace(const std::string& config) const { file_.replace(config); }

 private:
  void check() const;

  const std::string program_;
  const MemoryFile file_;
};

}  // namespace shoal::fleet
