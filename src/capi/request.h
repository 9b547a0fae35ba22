#pragma once

#include "capi/handle.h"
#include "shoal/shoal.h"
#include "shoal/speech_request.h"

struct shoal_request : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::request;
  shoal_request() : Handle(kKind) {}
  shoal::SpeechRequest value;
};

namespace shoal::capi {

// Copies of what a caller passes as a pointer and a size. Throw Error(invalid_argument) for NULL.
std::string bytes_of(const void* data, size_t size, const char* name);
std::vector<int32_t> codes_of(const int32_t* codes, size_t count);

}  // namespace shoal::capi
