#include "capi/mailbox.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "capi/call.h"
#include "capi/running_threads.h"
#include "capi/speech.h"

namespace shoal::capi {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Until the descriptor is readable, or the time is up (false).
bool wait_readable(int descriptor, SteadyTime until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int64_t most = std::numeric_limits<int>::max();
    pollfd asked{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&asked, 1, static_cast<int>(std::min<int64_t>(left.count(), most)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

Mailbox::Mailbox() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0)
    fail(ErrorCode::resource_exhausted,
         "mailbox: the system gave no event descriptor: ", std::strerror(errno));
}

void Mailbox::close() {
  std::vector<std::shared_ptr<Sender>> dropped;
  const std::lock_guard lock(mutex_);
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  dropped.swap(waiting_);
}

std::function<void()> Mailbox::poster(std::shared_ptr<Mailbox> mailbox, uint64_t token) {
  auto sender = std::make_shared<Sender>(token, mailbox->senders_);
  {
    const std::lock_guard lock(mailbox->mutex_);
    mailbox->waiting_.reserve(*mailbox->senders_);
  }
  return [mailbox = std::move(mailbox), sender = std::move(sender)] { mailbox->post(sender); };
}

void Mailbox::post(const std::shared_ptr<Sender>& sender) {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0 || std::exchange(sender->posted, true)) return;
  waiting_.push_back(sender);
  const uint64_t one = 1;
  // It is non-blocking and far from full: it cannot fail.
  if (waiting_.size() == 1) [[maybe_unused]]
    const auto written = ::write(descriptor_, &one, sizeof one);
}

size_t Mailbox::take_waiting(std::span<uint64_t> tokens) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(tokens.size(), waiting_.size());
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = waiting_[i]->token;
    waiting_[i]->posted = false;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  uint64_t counted = 0;
  if (waiting_.empty() && count > 0) [[maybe_unused]]
    const auto read = ::read(descriptor_, &counted, sizeof counted);
  return count;
}

size_t Mailbox::take(std::span<uint64_t> tokens, std::chrono::milliseconds patience) {
  const SteadyTime until = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (const size_t count = take_waiting(tokens); count > 0 || tokens.empty()) return count;
    if (!wait_readable(descriptor_, until)) return 0;
  }
}

}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_mailbox_new(shoal_mailbox** mailbox, shoal_error* error) {
  return call(error, [&] {
    shoal_mailbox*& out = output(mailbox, "mailbox");
    out = new shoal_mailbox;
  });
}

void shoal_mailbox_free(shoal_mailbox* mailbox) {
  if (!mailbox || in_child_of_running()) return;
  mailbox->shared->close();
  delete mailbox;
}

int32_t shoal_mailbox_fd(const shoal_mailbox* mailbox) {
  return mailbox ? mailbox->shared->descriptor() : -1;
}

shoal_code shoal_mailbox_take(shoal_mailbox* mailbox, int64_t timeout_ms, uint64_t* tokens, size_t capacity,
                              size_t* count, shoal_error* error) {
  return call(error, [&]() -> shoal_code {
    size_t& taken = output(count, "count");
    taken = 0;
    const std::span<uint64_t> into(&output(tokens, "tokens"), capacity);
    if (capacity == 0)
      shoal::fail(shoal::ErrorCode::invalid_argument, "capacity: expected at least 1, got 0");
    taken = held(mailbox, "mailbox").shared->take(into, patience_of(timeout_ms));
    return taken > 0 ? SHOAL_OK : SHOAL_NOT_YET;
  });
}
