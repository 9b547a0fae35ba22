#include "server/access/cors.h"

#include <algorithm>

#include "server/body/media_type.h"
#include "server/http/loopback.h"

namespace shoal::server {
namespace {

constexpr std::string_view kStrangePage = "pages of this origin may not use this server (--cors-origins)";
constexpr std::string_view kStrangeHost =
    "without an API key this server serves pages at localhost and 127.0.0.1 alone: open the page there, name "
    "its "
    "origin in --cors-origins, or set an API key";

// Without a trailing slash, which people copy along.
std::string_view origin_in(std::string_view text) {
  text = trimmed(text);
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

// "http://host:port" -> "host:port".
std::string_view authority_of(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ? origin : origin.substr(scheme + 3);
}

// The fields that the page's request will have (the openai package sends a dozen of x-stainless-*), if they
// are valid field names. An allowed origin may send any field; a wildcard would not include authorization.
std::string allowed_headers(const Request& preflight) {
  const std::string* asked = preflight.headers.find("access-control-request-headers");
  if (!asked) return "authorization, content-type, x-request-id, accept";
  std::string names;
  const auto add = [&](std::string_view name) {
    if (is_token(name)) names.append(names.empty() ? "" : ", ").append(name);
    return false;
  };
  any_part(*asked, add);
  return names;
}

}  // namespace

CrossOrigin::CrossOrigin(std::string_view origins, bool for_this_machine)
    : for_this_machine_(for_this_machine) {
  while (!origins.empty()) {
    const size_t comma = std::min(origins.find(','), origins.size());
    const std::string_view origin = origin_in(origins.substr(0, comma));
    if (origin == "*") any_ = true;
    if (!origin.empty()) origins_.emplace_back(origin);
    origins.remove_prefix(std::min(comma + 1, origins.size()));
  }
}

bool CrossOrigin::allows(std::string_view origin) const {
  return any_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

bool CrossOrigin::is_own(std::string_view host) const {
  return !for_this_machine_ || is_loopback_host(host) ||
         std::ranges::any_of(origins_, [&](std::string_view origin) {
           return equal_ignoring_case(host_of(authority_of(origin)), host);
         });
}

std::string_view CrossOrigin::objection(const Request& request, bool upgrade) const {
  const std::string* origin = request.headers.find("origin");
  if (!origin) return "";  // not a browser's page
  if (!upgrade && (request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS"))
    return "";
  if (allows(*origin)) return "";
  const std::string* host = request.headers.find("host");
  if (!host || !equal_ignoring_case(authority_of(*origin), *host)) return kStrangePage;
  return is_own(host_of(*host)) ? "" : kStrangeHost;
}

Headers CrossOrigin::answer_headers(const Request& request) const {
  Headers headers;
  if (origins_.empty()) return headers;
  if (!any_) headers.add("vary", "origin");
  const std::string* origin = request.headers.find("origin");
  if (!origin || !allows(*origin)) return headers;
  headers.add("access-control-allow-origin", any_ ? "*" : *origin);
  headers.add("access-control-expose-headers", "*");
  return headers;
}

Headers CrossOrigin::preflight_headers(const Request& request, std::string_view methods) const {
  const std::string* origin = request.headers.find("origin");
  if (!origin || !allows(*origin)) return {};
  return {{"access-control-allow-methods", std::string(methods)},
          {"access-control-allow-headers", allowed_headers(request)},
          {"access-control-max-age", "600"}};
}

}  // namespace shoal::server
