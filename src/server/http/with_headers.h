// An exchange whose every answer has some fields more.
#pragma once

#include <functional>
#include <utility>

#include "server/http/exchange.h"

namespace shoal::server {

class WithHeaders : public Exchange {
 public:
  // `latest`: further fields, as they are when the answer begins.
  WithHeaders(Exchange& inner, Headers headers, std::function<Headers()> latest = {})
      : inner_(inner), headers_(std::move(headers)), latest_(std::move(latest)) {}
  const Request& request() const override { return inner_.request(); }
  Executor executor() const override { return inner_.executor(); }
  Task<> respond(Response response) override { return inner_.respond(completed(std::move(response))); }
  Task<> begin(Response head) override { return inner_.begin(completed(std::move(head))); }
  Task<> write(std::string_view bytes) override { return inner_.write(bytes); }
  Task<> end() override { return inner_.end(); }
  bool begun() const override { return inner_.begun(); }
  void on_gone(std::function<void()> notify) override { inner_.on_gone(std::move(notify)); }

 private:
  Response completed(Response response) const {
    for (const auto& [name, value] : headers_) response.headers.add(name, value);
    if (!latest_) return response;
    for (const auto& [name, value] : latest_()) response.headers.add(name, value);
    return response;
  }

  Exchange& inner_;
  const Headers headers_;
  const std::function<Headers()> latest_;
};

}  // namespace shoal::server
