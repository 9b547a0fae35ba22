// What clients of the Wyoming protocol ask for.
#pragma once

#include <string>

#include "server/body/value.h"

namespace shoal::server {

struct WyomingVoice {
  std::string name, language, speaker;
};

// The data of synthesize and synthesize-start.
struct WyomingRequest {
  std::string text;  // of synthesize
  WyomingVoice voice;
};

// Each throws BodyError: fields that are missing, unknown or do not fit.
WyomingRequest read_synthesize(const Value& data);
WyomingRequest read_synthesize_start(const Value& data);
std::string read_synthesize_chunk(const Value& data);
std::string read_ping(const Value& data);

}  // namespace shoal::server
