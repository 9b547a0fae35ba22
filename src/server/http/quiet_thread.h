// A thread that blocks all signals: they go to the thread that waits for them.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace shoal::server {

// `name`: at most 15 bytes, as the system shows it.
std::thread start_quiet_thread(const std::string& name, std::function<void()> work);

}  // namespace shoal::server
