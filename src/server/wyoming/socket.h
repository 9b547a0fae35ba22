// A connection of TCP or of a UNIX socket that carries Wyoming events, with deadlines.
#pragma once

#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <string>

#include "server/http/body_budget.h"
#include "server/wyoming/channel.h"

namespace shoal::server {

// TCP and UNIX sockets alike.
using AnyStream = boost::asio::generic::stream_protocol;
using WyomingStream = boost::asio::basic_stream_socket<AnyStream, Executor>;

struct WyomingTimes {
  std::chrono::milliseconds event{60'000};  // from the first byte of an event to its last
  std::chrono::milliseconds write{60'000};  // without the peer reading a byte
};

// Belongs to one thread, whose sweep() compares the deadlines with its clock.
class WyomingSocket final : public WyomingChannel {
 public:
  // `budget`: for events, until they are read.
  WyomingSocket(WyomingStream socket, std::string peer, WyomingTimes times, BodyBudget& budget);

  Executor executor() const override { return executor_; }
  const std::string& peer() const override { return peer_; }
  Task<std::optional<WyomingEvent>> read() override;
  Task<> write_text(std::string_view text) override { return write(text); }
  Task<> write_binary(std::string_view bytes) override { return write(bytes); }
  Task<> close(uint16_t code, std::string_view reason) override;

  // After the conversation: sends the end and reads on for a moment, because closing a socket with unread
  // bytes would reset it before the peer has seen the last event.
  Task<> finish();
  void sweep(std::chrono::steady_clock::time_point now);
  void cut();

 private:
  using Time = std::chrono::steady_clock::time_point;

  Task<> write(std::string_view bytes);
  void check_room();

  WyomingStream socket_;
  const Executor executor_;
  const std::string peer_;
  const WyomingTimes times_;
  WyomingReader reader_;
  BodyShare share_;
  std::array<char, 8192> piece_{};
  bool closing_ = false, event_is_late_ = false, reader_is_slow_ = false;
  Time event_deadline_ = Time::max(), write_deadline_ = Time::max(), end_ = Time::max();
};

}  // namespace shoal::server
