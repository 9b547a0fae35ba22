#include "shoal/model.h"

#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/config.h"
#include "report/model_json.h"

using namespace shoal::capi;

shoal_code shoal_inspect_model(const char* model, const char* precision, int32_t with_tensors,
                               shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    const bool automatic = !precision || *precision == '\0';
    const shoal::ModelReport report = shoal::inspect_model(
        text_or_empty(model), automatic ? shoal::Precision::automatic : shoal::parse_precision(precision));
    out = json_buffer(shoal::report::model_json(report, with_tensors != 0));
  });
}

shoal_code shoal_estimate_memory(const shoal_config* config, shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    const shoal::EngineConfig wanted = config_of(config);
    wanted.validate();
    out = json_buffer(shoal::report::memory_json(shoal::estimate_memory(wanted)));
  });
}

shoal_code shoal_resolve_device(const char* device, shoal_buffer** text, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(text, "text");
    out = buffer_of(shoal::resolve_device(text_of(device, "device")));
  });
}
