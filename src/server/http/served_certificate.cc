#include "server/http/served_certificate.h"

#include <sys/stat.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/http/quiet_thread.h"
#include "server/http/tls.h"

namespace shoal::server {
namespace {

// Through links: Kubernetes points them at another folder.
std::string version_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return "absent";
  return concat(status.st_dev, ' ', status.st_ino, ' ', status.st_size, ' ', status.st_mtim.tv_sec, '.',
                status.st_mtim.tv_nsec, ' ', status.st_ctim.tv_sec, '.', status.st_ctim.tv_nsec);
}

}  // namespace

ServedCertificate::ServedCertificate(std::string certificate_path, std::string key_path)
    : certificate_path_(std::move(certificate_path)),
      key_path_(std::move(key_path)),
      tried_(stamp()),
      seen_(tried_),
      current_(make_tls(certificate_path_, key_path_)) {}

ServedCertificate::~ServedCertificate() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<boost::asio::ssl::context> ServedCertificate::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

ServedCertificate::Stamp ServedCertificate::stamp() const {
  return concat(version_of(certificate_path_), ", ", version_of(key_path_));
}

void ServedCertificate::watch(std::chrono::milliseconds interval) {
  CHECK(!thread_.joinable(), "a certificate is watched once");
  thread_ = start_quiet_thread("certificate", [this, interval] { look_until_stopped(interval); });
}

void ServedCertificate::look_until_stopped(std::chrono::milliseconds interval) {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, interval, [this] { return stopping_; })) {
    lock.unlock();
    Stamp now = stamp();
    const bool settled = now == seen_;
    seen_ = std::move(now);
    if (settled && seen_ != tried_) {
      tried_ = seen_;
      read_again();
    }
    lock.lock();
  }
}

void ServedCertificate::read_again() {
  try {
    std::shared_ptr<boost::asio::ssl::context> next = make_tls(certificate_path_, key_path_);
    {
      const std::lock_guard lock(mutex_);
      current_.swap(next);
    }
    log(LogLevel::info, "tls_certificate: ", certificate_path_, ": has changed and was read again");
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what(), "; the certificate that was read before stays in use");
  }
}

}  // namespace shoal::server
