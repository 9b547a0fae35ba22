// The web page, as it was built from web/ and put into the program.
#pragma once

#include <span>
#include <string_view>

namespace shoal::server {

struct Asset {
  std::string_view
      path;  // "/", "/assets/app-1A2B3C4D.js": the names under /assets hold a hash of the content
  std::string_view content_type;
  std::string_view bytes;
  std::string_view gzip;  // compressed; empty if compression gains nothing
  std::string_view etag;  // of `bytes`, without quotes
};

// Empty in a program that was built without the page (SHOAL_WEB_PAGE).
std::span<const Asset> assets();
// Finds an asset by its path; nullptr when there is none.
const Asset* find_asset(std::string_view path);

}  // namespace shoal::server
