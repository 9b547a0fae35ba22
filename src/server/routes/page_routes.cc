// The web page: `/` and its assets.
#include <string>
#include <string_view>

#include "server/body/media_type.h"
#include "server/page/page.h"
#include "server/routes/services.h"

namespace shoal::server {
namespace {

// No foreign content, no inline scripts, no framing.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src "
    "'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

constexpr std::string_view kHowToHaveThePage =
    "this program was built without the web page; install nodejs and npm and build it with "
    "-DSHOAL_WEB_PAGE=ON";

bool takes_gzip(const Request& request) {
  const std::string* header = request.headers.find("accept-encoding");
  return header && lists(*header, "gzip");
}

// RFC 9110, 13.1.2: "*" or a list, compared without regard to W/.
bool has_already(const Request& request, std::string_view quoted_etag) {
  const std::string* header = request.headers.find("if-none-match");
  if (!header) return false;
  return any_part(*header, [&](std::string_view part) {
    if (part.starts_with("W/")) part.remove_prefix(2);
    return part == "*" || part == quoted_etag;
  });
}

Response answer_with_asset(const Asset& asset, const Request& request) {
  const bool gzip = !asset.gzip.empty() && takes_gzip(request);
  const std::string etag = '"' + std::string(asset.etag) + (gzip ? "-gzip\"" : "\"");
  const bool named_by_content = asset.path != "/";
  Response response;
  response.headers.add("etag", etag);
  response.headers.add("cache-control",
                       named_by_content ? "public, max-age=31536000, immutable" : "no-cache");
  response.headers.add("vary", "accept-encoding");
  response.headers.add("content-security-policy", std::string(kContentSecurityPolicy));
  response.headers.add("x-content-type-options", "nosniff");
  response.headers.add("x-frame-options", "DENY");
  response.headers.add("referrer-policy", "no-referrer");
  response.headers.add("cross-origin-resource-policy", "same-origin");
  if (has_already(request, etag)) {
    response.status = 304;
    return response;
  }
  response.content_type = asset.content_type;
  if (gzip) response.headers.add("content-encoding", "gzip");
  response.body = gzip ? asset.gzip : asset.bytes;
  return response;
}

Task<> handle_asset(Services&, Exchange& exchange) {
  const Request& request = exchange.request();
  const Asset* asset = find_asset(request.path);
  if (!asset && request.path == "/") fail(ErrorCode::not_found, kHowToHaveThePage);
  if (!asset) fail(ErrorCode::not_found, "the web page has no file of this name; reload the page");
  co_await exchange.respond(answer_with_asset(*asset, request));
}

Route asset_route(std::string path, std::string summary, std::vector<std::string> answer_types) {
  return {.method = "GET",
          .path = std::move(path),
          .access = Access::open,
          .doc = {.summary = std::move(summary), .answer_types = std::move(answer_types)},
          .handle = handle_asset};
}

}  // namespace

std::vector<Route> page_routes(const ServerConfig& config) {
  if (!config.web_page) return {};
  return {asset_route("/", "The web page to try the server", {"text/html"}),
          asset_route("/assets/{name}", "Scripts, styles and fonts of the web page",
                      {"text/javascript", "text/css", "font/woff2", "image/svg+xml", "text/plain"})};
}

}  // namespace shoal::server
