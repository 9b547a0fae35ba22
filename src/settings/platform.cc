#include "settings/platform.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "shoal/settings.h"

namespace shoal {
namespace settings {
namespace {

constexpr const char* kPort = "PORT";
constexpr const char* kHealthPort = "PORT_HEALTH";
constexpr const char* kVertexPort = "AIP_HTTP_PORT";
constexpr std::array kRunPod = {"RUNPOD_POD_ID", "RUNPOD_ENDPOINT_ID", kHealthPort};
constexpr std::array<std::pair<const char*, std::string_view>, 2> kRoutes = {
    {{"AIP_HEALTH_ROUTE", "health_route"}, {"AIP_PREDICT_ROUTE", "predict_route"}}};
constexpr const char* kMultiModel = "SAGEMAKER_MULTI_MODEL";
constexpr const char* kModelsRoot = "/opt/ml/models";  // where SageMaker unpacks them
constexpr std::array kPlatformVariables = {
    kPort,           kMultiModel,          kHealthPort,        kVertexPort,
    "RUNPOD_POD_ID", "RUNPOD_ENDPOINT_ID", "AIP_HEALTH_ROUTE", "AIP_PREDICT_ROUTE"};

class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& all) : all_(all) {}

  // Null: it is not set.
  const std::string* find(const char* name) const {
    const auto found = all_.find(name);
    return found == all_.end() || found->second.empty() ? nullptr : &found->second;
  }
  const char* first_of(const auto& names) const {
    const auto found =
        std::ranges::find_if(names, [this](const char* name) { return find(name) != nullptr; });
    return found == names.end() ? nullptr : *found;
  }

 private:
  const std::map<std::string, std::string>& all_;
};

std::string source_of(const char* variable) { return concat("environment ", variable); }

std::string with_port(const std::string& listen, std::string_view port) {
  return concat(listen.substr(0, listen.rfind(':')), ":", port);
}

// The address with the port that the variable names.
std::string at_port_of(const char* variable, const std::string& text, const std::string& listen,
                       std::string_view key) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0)
    fail(ErrorCode::invalid_argument, key, ": expected a port, 1 to 65535, got \"", printable(text), "\" (",
         source_of(variable), ")");
  return with_port(listen, std::to_string(port));
}

}  // namespace

std::vector<PlatformValue> platform_values(const std::map<std::string, std::string>& all,
                                           const ServerConfig& otherwise) {
  const Variables variables(all);
  std::vector<PlatformValue> values;
  std::string listen = otherwise.listen;
  if (const char* name = variables.first_of(std::array{kVertexPort, kPort})) {
    listen = at_port_of(name, *variables.find(name), listen, "listen");
    values.push_back({"listen", listen, source_of(name)});
  }
  if (const std::string* port = variables.find(kHealthPort)) {
    const std::string health = at_port_of(kHealthPort, *port, listen, "operator_listen");
    if (health != listen) values.push_back({"operator_listen", health, source_of(kHealthPort)});
  }
  if (const char* name = variables.first_of(kRunPod))
    values.push_back({"ping_tells_loading", true, source_of(name)});
  if (const std::string* several = variables.find(kMultiModel); several && *several == "true")
    values.push_back({"models_root", std::string(kModelsRoot), source_of(kMultiModel)});
  for (const auto& [name, key] : kRoutes)
    if (const std::string* path = variables.find(name)) values.push_back({key, *path, source_of(name)});
  return values;
}

}  // namespace settings

std::map<std::string, std::string> platform_environment() {
  std::map<std::string, std::string> found;
  for (const char* name : settings::kPlatformVariables)
    if (const char* value = std::getenv(name)) found.emplace(name, value);
  return found;
}

}  // namespace shoal
