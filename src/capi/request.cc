#include "capi/request.h"

#include <string>

#include "base/error.h"
#include "capi/buffer.h"
#include "capi/call.h"
#include "capi/request_fields.h"
#include "shoal/model.h"

namespace shoal::capi {

std::string bytes_of(const void* data, size_t size, const char* name) {
  if (!data) fail(ErrorCode::invalid_argument, name, ": expected bytes, got NULL");
  return {static_cast<const char*>(data), size};
}

std::vector<int32_t> codes_of(const int32_t* codes, size_t count) {
  if (!codes) fail(ErrorCode::invalid_argument, "codes: expected codes, got NULL");
  return {codes, codes + count};
}

}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_request_new(shoal_request** request, shoal_error* error) {
  return call(error, [&] {
    shoal_request*& out = output(request, "request");
    out = new shoal_request;
  });
}

void shoal_request_free(shoal_request* request) { delete request; }

shoal_code shoal_request_set(shoal_request* request, const char* name, const char* value,
                             shoal_error* error) {
  return call(error, [&] { set_field(held(request, "request").value, text_of(name, "name"), value); });
}

shoal_code shoal_request_add_reference(shoal_request* request, const void* audio, size_t size,
                                       const char* text, shoal_error* error) {
  return call(error, [&] {
    auto& clips = held(request, "request").value.references;
    clips.push_back({.audio = bytes_of(audio, size, "audio"), .text = text_of(text, "text")});
  });
}

shoal_code shoal_request_add_codes(shoal_request* request, const int32_t* codes, size_t count,
                                   const char* text, shoal_error* error) {
  return call(error, [&] {
    auto& clips = held(request, "request").value.encoded_references;
    clips.push_back({.codes = codes_of(codes, count), .text = text_of(text, "text")});
  });
}

shoal_code shoal_request_fields(shoal_buffer** json, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(json, "json");
    out = json_buffer(fields_json());
  });
}

shoal_code shoal_request_check(const shoal_request* request, const char* model, shoal_buffer** json,
                               shoal_error* error) {
  return call(error, [&] {
    if (json) *json = nullptr;
    const auto warnings = shoal::validate_request(held(request, "request").value, text_or_empty(model));
    if (json) *json = json_buffer(texts_value(warnings));
  });
}
