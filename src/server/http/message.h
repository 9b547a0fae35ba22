// Requests and answers as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::server {

// A few fields in order; names are compared without regard to case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;
  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  // The first field of that name; nullptr when there is none.
  const std::string* find(std::string_view name) const;
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

bool equal_ignoring_case(std::string_view a, std::string_view b);

struct Request {
  std::string method;                                      // as sent: "GET"
  std::string path;                                        // percent-decoded, without the query: "/v1/tts"
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  Headers headers;
  std::string body;
  std::string peer;  // address, for the log

  // Set by the application when it judges the head.
  std::string id;      // of the request: in the log, in errors and in the header x-request-id
  std::string client;  // name of the API key; empty without keys
  std::string route;   // pattern of the table, a label of metrics; "" for none

  // First value of a query parameter; absent when it is not there.
  std::optional<std::string_view> parameter(std::string_view name) const;
  // Media type of the body in lower case, without parameters: "application/json"; "" without the header.
  std::string content_type() const;
};

struct Response {
  int status = 200;
  std::string content_type;  // empty: no such header
  std::string body;
  Headers headers;  // besides Content-Type, Content-Length, Transfer-Encoding, Connection, Date
};

// "Not Found"; "Unknown" for statuses that the server never sends.
std::string_view phrase_of(int status);

}  // namespace shoal::server
