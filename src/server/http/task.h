// The coroutine of the server: runs on the thread of its connection, never on two.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace shoal::server {

using Executor = boost::asio::io_context::executor_type;

template <typename T = void>
using Task = boost::asio::awaitable<T, Executor>;

}  // namespace shoal::server
