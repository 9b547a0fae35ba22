// One I/O thread's share: its io_context, its acceptor, its connections.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <unordered_set>

#include "server/http/connection.h"
#include "server/http/transport_state.h"

namespace shoal::server {

// The kernel spreads connections over the acceptors of one port; a connection stays with its thread.
class Lane {
 public:
  explicit Lane(TransportState& state) : state_(state) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // `shared`: with acceptors of other lanes. Both throw Error(io) with the address and why.
  void bind(const boost::asio::ip::tcp::endpoint& endpoint, bool shared);
  void listen();
  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void start(int number);

  // From any thread, once started.
  std::future<void> drain();
  std::future<void> stop_listening();
  // How many were busy; all are gone soon after.
  std::future<int> cut();
  void stop();

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, Executor>;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

  Task<> accept();
  Task<> attend(std::shared_ptr<Connection> connection);
  std::future<void> run(std::function<void()> task);
  void welcome(Socket socket);
  void sweep();

  TransportState& state_;
  std::unordered_set<Connection*> connections_;
  // Must be destroyed before the objects that its coroutines refer to, and after the objects that refer to
  // it.
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<Executor> work_{context_.get_executor()};
  Acceptor acceptor_{context_.get_executor()};
  Timer sweeper_{context_.get_executor()}, pause_{context_.get_executor()};
  std::thread thread_;
};

}  // namespace shoal::server
