#include "server/request_slots.h"

#include "base/error.h"

namespace shoal::server {

RequestSlots::Slot RequestSlots::take(const std::string& client, int64_t in_all) {
  const std::lock_guard lock(mutex_);
  if (taken_ >= in_all) {
    fail(ErrorCode::resource_exhausted, "the server is at its limit of ", in_all,
         " requests at a time; try again later");
  }
  int& of_client = by_client_[client];
  if (per_client_ > 0 && of_client >= per_client_) {
    fail(ErrorCode::resource_exhausted, "this key is at its limit of ", per_client_,
         " requests at a time; try again when one of them has ended");
  }
  Slot slot(*this, client);
  ++of_client;
  ++taken_;
  return slot;
}

int RequestSlots::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

uint64_t RequestSlots::given_back() const {
  const std::lock_guard lock(mutex_);
  return given_back_;
}

void RequestSlots::leave(const std::string& client) {
  const std::lock_guard lock(mutex_);
  --taken_;
  ++given_back_;
  const auto found = by_client_.find(client);
  if (--found->second == 0) by_client_.erase(found);
}

}  // namespace shoal::server
