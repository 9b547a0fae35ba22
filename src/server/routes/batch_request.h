// What POST /v1/tts/batch asks for.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "audio/encoder.h"
#include "server/routes/services.h"

namespace shoal::server {

struct BatchItem {
  SpeechRequest speech;  // empty when it could not be read
  std::optional<Error> error;
};

struct BatchRequest {
  Engine* engine = nullptr;
  std::vector<BatchItem> items;
  std::optional<uint64_t> seed;
  audio::Format format = audio::Format::wav;
  int sample_rate_hz = 0;                // of the sound; 0: usual_rate_hz
  std::chrono::milliseconds timeout{0};  // of all items together
  bool in_order = false;                 // answers come in the order of the items, otherwise as these end
  // Limit of the bytes of results that wait for the client or for an earlier result; beyond it no more items
  // are started.
  size_t most_waiting_bytes = size_t{64} << 20;
};

// The list of texts is called `list` in bodies and errors.
std::vector<FieldDoc> batch_docs(const ServerConfig& config, const std::string& list);

// Reads the body of `request` and decodes clips to measure them, so it must run on a worker. An error in one
// item becomes that item's error; errors of the whole batch are thrown: BodyError, Error: unavailable,
// resource_exhausted when the engine's queue is full.
BatchRequest read_batch(Services& services, const Request& request, const Value& body,
                        const std::string& list);

}  // namespace shoal::server
