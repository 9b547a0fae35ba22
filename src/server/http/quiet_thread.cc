#include "server/http/quiet_thread.h"

#include <csignal>
#include <pthread.h>
#include <utility>

namespace shoal::server {

std::thread start_quiet_thread(const std::string& name, std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.c_str());
  return thread;
}

}  // namespace shoal::server
