#include "server/wyoming/listener.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "server/http/quiet_thread.h"
#include "server/wyoming/door.h"
#include "server/wyoming/session.h"

namespace shoal::server {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr auto kAwaitGuest = asio::as_tuple(asio::use_awaitable_t<Executor>());
constexpr std::chrono::milliseconds kSweep{500};
constexpr std::chrono::milliseconds kPauseWithoutRoom{100};  // when descriptors or memory have run out
constexpr std::chrono::milliseconds kForCutOnes{5000};       // for coroutines to end

struct Guest {
  Guest(const WyomingHost& host, WyomingStream stream, const std::string& peer, WyomingTimes times,
        BodyBudget& budget)
      : socket(std::move(stream), peer, times, budget), session(host, socket) {}
  WyomingSocket socket;
  WyomingSession session;
};

}  // namespace

class WyomingListener::Impl {
 public:
  explicit Impl(const WyomingHost& host)
      : host_(host),
        config_(host.services.config),
        budget_(int64_t{config_.max_body_memory_mb} << 20),
        addresses_(parse_wyoming(config_.wyoming)) {}
  ~Impl() { stop(); }

  void start() {
    for (const WyomingAddress& address : addresses_)
      doors_.push_back(std::make_unique<WyomingDoor>(context_.get_executor(), address));
    for (const auto& door : doors_) asio::co_spawn(context_.get_executor(), accept(*door), asio::detached);
    sweep();
    thread_ = start_quiet_thread("wyoming", [this] { context_.run(); });
  }

  std::vector<std::string> addresses() const {
    std::vector<std::string> names;
    for (const auto& door : doors_) names.push_back(door->name());
    return names;
  }

  void drain() {
    asio::post(context_, [this] {
      for (const auto& door : doors_) door->close();
      for (Guest* guest : guests_) guest->session.drain();
    });
  }

  bool wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, patience, [this] { return open_ == 0; });
  }

  void stop() {
    if (!thread_.joinable()) return;
    asio::post(context_, [this] {
      for (const auto& door : doors_) door->close();
      for (Guest* guest : guests_) guest->socket.cut();
    });
    if (!wait(kForCutOnes)) log(LogLevel::error, "wyoming: connections did not end when they were cut");
    context_.stop();
    thread_.join();
  }

 private:
  using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

  Task<> accept(WyomingDoor& door) {
    while (door.acceptor().is_open()) {
      auto [error, stream] = co_await door.acceptor().async_accept(kAwaitGuest);
      if (!error) {
        welcome(std::move(stream));
      } else if (door.acceptor().is_open() && error != asio::error::connection_aborted) {
        log(LogLevel::warning, "wyoming: accepting a connection: ", error.message());
        pause_.expires_after(kPauseWithoutRoom);
        co_await pause_.async_wait(kAwaitGuest);
      }
    }
  }

  void welcome(WyomingStream stream) {
    try {
      const std::string peer = prepare_accepted(stream);
      if (open_ >= config_.max_connections) {
        turn_away(stream);
        return;
      }
      const WyomingTimes times{.event = std::chrono::seconds(config_.body_timeout_s),
                               .write = std::chrono::seconds(config_.write_timeout_s)};
      auto guest = std::make_shared<Guest>(host_, std::move(stream), peer, times, budget_);
      ++open_;
      asio::co_spawn(context_.get_executor(), attend(std::move(guest)), asio::detached);
    } catch (const std::bad_alloc&) {
      log(LogLevel::error, "wyoming: accepting a connection: out of memory");
    }
  }

  static void turn_away(WyomingStream& stream) {
    const HttpError error{503, ErrorCode::unavailable, "too many connections are open at the moment"};
    const std::string last_words = wyoming_error(error);
    boost::system::error_code ignored;
    stream.non_blocking(true, ignored);
    stream.write_some(asio::buffer(last_words), ignored);
    stream.close(ignored);
  }

  Task<> attend(std::shared_ptr<Guest> guest) {
    guests_.insert(guest.get());
    try {
      co_await guest->session.run();
    } catch (const std::exception& error) {
      log(LogLevel::debug, "wyoming: ", error.what());
    } catch (...) {
      log(LogLevel::error, "wyoming: an unknown exception");
    }
    co_await guest->socket.finish();
    guests_.erase(guest.get());
    guest.reset();
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) empty_.notify_all();
  }

  void sweep() {
    for (Guest* guest : guests_) guest->socket.sweep(Clock::now());
    sweeper_.expires_after(kSweep);
    sweeper_.async_wait([this](boost::system::error_code error) {
      if (!error) sweep();
    });
  }

  const WyomingHost& host_;
  const ServerConfig& config_;
  BodyBudget budget_;
  const std::vector<WyomingAddress> addresses_;
  std::set<Guest*> guests_;
  std::atomic<int> open_{0};
  std::mutex mutex_;
  std::condition_variable empty_;
  // Must be destroyed before the objects that its coroutines refer to, and after those that refer to it.
  asio::io_context context_{1};
  asio::executor_work_guard<Executor> work_{context_.get_executor()};
  Timer sweeper_{context_.get_executor()}, pause_{context_.get_executor()};
  std::vector<std::unique_ptr<WyomingDoor>> doors_;
  std::thread thread_;
};

WyomingListener::WyomingListener(const WyomingHost& host) : impl_(std::make_unique<Impl>(host)) {}
WyomingListener::~WyomingListener() = default;
void WyomingListener::start() { impl_->start(); }
std::vector<std::string> WyomingListener::addresses() const { return impl_->addresses(); }
void WyomingListener::drain() { impl_->drain(); }
bool WyomingListener::wait(std::chrono::milliseconds patience) { return impl_->wait(patience); }
void WyomingListener::stop() { impl_->stop(); }

}  // namespace shoal::server
