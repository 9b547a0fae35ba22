// Tokens of what has become ready, behind a file descriptor.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "capi/handle.h"
#include "shoal/shoal.h"

namespace shoal::capi {

class Mailbox {
 public:
  Mailbox();  // throws Error(resource_exhausted): no file descriptors left
  ~Mailbox() { close(); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // A function that posts the token, unless it waits to be taken already. It cannot fail.
  static std::function<void()> poster(std::shared_ptr<Mailbox> mailbox, uint64_t token);

  int descriptor() const { return descriptor_; }
  // How many were taken; waits for one at most so long.
  size_t take(std::span<uint64_t> tokens, std::chrono::milliseconds patience);
  // Posts nothing from here on; the descriptor is closed.
  void close();

 private:
  // A sender; it stays until its last token was taken.
  struct Sender {
    Sender(uint64_t own, std::shared_ptr<std::atomic<size_t>> all) : token(own), open(std::move(all)) {
      ++*open;
    }
    ~Sender() { --*open; }
    const uint64_t token;
    const std::shared_ptr<std::atomic<size_t>> open;
    bool posted = false;  // guarded by the mailbox
  };

  void post(const std::shared_ptr<Sender>& sender);
  size_t take_waiting(std::span<uint64_t> tokens);

  std::mutex mutex_;
  int descriptor_ = -1;  // readable while somebody waits
  // Has room for all senders.
  std::vector<std::shared_ptr<Sender>> waiting_;
  const std::shared_ptr<std::atomic<size_t>> senders_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace shoal::capi

struct shoal_mailbox : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::mailbox;
  shoal_mailbox() : Handle(kKind) {}
  const std::shared_ptr<shoal::capi::Mailbox> shared = std::make_shared<shoal::capi::Mailbox>();
};
