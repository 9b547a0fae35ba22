// Limits how many requests keep the models busy at once, in all and per client.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace shoal::server {

class RequestSlots {
 public:
  // 0: no limit.
  explicit RequestSlots(int per_client) : per_client_(per_client) {}

  // A place, given back by its destructor.
  class Slot {
   public:
    Slot() = default;
    Slot(RequestSlots& owner, std::string client) : owner_(&owner), client_(std::move(client)) {}
    Slot(Slot&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), client_(std::move(other.client_)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (owner_) owner_->leave(client_);
    }

   private:
    RequestSlots* owner_ = nullptr;
    std::string client_;
  };

  // Throws Error(resource_exhausted) at once, naming the limit that is reached.
  Slot take(const std::string& client, int64_t in_all);
  int taken() const;
  uint64_t given_back() const;  // since the start

 private:
  void leave(const std::string& client);

  const int per_client_;
  mutable std::mutex mutex_;
  int taken_ = 0;
  uint64_t given_back_ = 0;
  std::map<std::string, int> by_client_;
};

}  // namespace shoal::server
