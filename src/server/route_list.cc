#include "server/route_list.h"

#include <map>

#include "server/access/error_style.h"
#include "server/routes/services.h"

namespace shoal::server {

std::vector<std::string> repeatable_paths(const ServerConfig& config) {
  std::vector<std::string> paths;
  for (Route& route : route_table(config))
    if (route.method == "POST" && !route.changes) paths.push_back(std::move(route.path));
  return paths;
}

std::vector<SpeechForm> speech_forms(const ServerConfig& config, const std::string& why_full,
                                     const std::string& request_id) {
  std::map<ErrorStyle, SpeechForm> forms;
  for (const Route& route : route_table(config))
    if (route.takes_slot) forms[route.errors].paths.push_back(route.path);
  std::vector<SpeechForm> all;
  for (auto& [style, form] : forms) {
    const auto body = [&, of = style](ErrorCode code, const std::string& why) {
      return error_response(of, http_error(Error(code, why)), request_id).body;
    };
    form.full = body(ErrorCode::resource_exhausted, why_full);
    form.absent = body(ErrorCode::unavailable, "no worker is ready");
    all.push_back(std::move(form));
  }
  return all;
}

}  // namespace shoal::server
