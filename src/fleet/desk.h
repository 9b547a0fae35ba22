// Between the thread that runs a fleet and those that are asked about it.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "fleet/status.h"

namespace shoal::fleet {

// Settings of workers by name, as flags have them: "max_queue" -> "12".
using Settings = std::map<std::string, std::string>;

// What an operator asks for.
struct Order {
  enum class What {
    drain,    // the worker gets no more requests; those inside go on
    resume,   // it gets requests again
    restart,  // of one worker, or of all, one after the other
    reload,   // the same of all, with other settings
  };
  What what = What::restart;
  std::string worker;  // empty: all
  Settings settings;   // of a reload; those of reloads before stay
};

// Thread-safe.
class Desk {
 public:
  // How the fleet was a moment ago.
  FleetStatus status() const;
  // Waits until the fleet has begun to do it. Throws what the fleet throws, and Error(unavailable) when the
  // fleet ends.
  void ask(Order order);

  // The fleet's side.
  void publish(FleetStatus status);
  void obey(const std::function<void(const Order&)>& act);
  void close();  // the fleet ends: it obeys no longer

 private:
  // Why an order is not obeyed. A value: an exception would belong to two threads.
  struct Refusal {
    ErrorCode code;
    std::string why;
  };
  struct Asked {
    Order order;
    std::promise<std::optional<Refusal>> done;
  };

  mutable std::mutex mutex_;
  FleetStatus status_;
  std::deque<Asked> asked_;
  bool is_closed_ = false;
};

}  // namespace shoal::fleet
