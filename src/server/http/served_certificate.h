// The certificate that new connections are shown: read again when its files change.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace shoal::server {

class ServedCertificate {
 public:
  // Throws as make_tls().
  ServedCertificate(std::string certificate_path, std::string key_path);
  ~ServedCertificate();
  ServedCertificate(const ServedCertificate&) = delete;
  ServedCertificate& operator=(const ServedCertificate&) = delete;

  // Checks both files every `interval` on its own thread. A file is read once it has changed and then stayed
  // unchanged for an interval; if it is unusable, that is logged and the last good certificate stays.
  void watch(std::chrono::milliseconds interval);
  // From any thread. Open connections keep their certificate.
  std::shared_ptr<boost::asio::ssl::context> current() const;

 private:
  using Stamp = std::string;  // that no other version of the files has

  Stamp stamp() const;
  void look_until_stopped(std::chrono::milliseconds interval);
  void read_again();

  const std::string certificate_path_, key_path_;
  Stamp tried_, seen_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::shared_ptr<boost::asio::ssl::context> current_;
  std::thread thread_;
};

}  // namespace shoal::server
