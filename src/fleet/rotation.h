// Who gets requests from the balancer.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace shoal::fleet {

class Rotation {
 public:
  // Whether the worker of this name gets requests; false if that could not be said. One that gets them is
  // ready.
  using Tell = std::function<bool(const std::string& worker, bool in)>;

  // Without `tell`: there is no balancer.
  explicit Rotation(Tell tell) : tell_(std::move(tell)) {}

  // An operator's wish, which stays until the next.
  void drain(const std::string& worker) { wishes_[worker].drained = true; }
  void resume(const std::string& worker) { wishes_[worker].drained = false; }
  bool is_drained(const std::string& worker) const;
  // There is no such worker any more.
  void forget(const std::string& worker) { wishes_.erase(worker); }
  // It is about to end: out from now on, until it has been unready and is ready again.
  void leaves(const std::string& worker);

  // The balancer is told what it does not know.
  void update(const std::string& worker, bool is_ready);
  // It is told again that a worker is ready, if it may have requests: it sees that by itself, but later.
  void confirm(const std::string& worker);
  // A new balancer sends requests to all.
  void balancer_started();

 private:
  struct Wish {
    bool drained = false, leaves = false, was_away = false;
    bool told_out = false;  // the balancer knows
    bool is_lost = false;   // it was not told, and the log says so
  };
  void say(const std::string& worker, Wish& wish, bool in);

  const Tell tell_;
  std::map<std::string, Wish> wishes_;
};

}  // namespace shoal::fleet
