// Many requests, one answer.
#pragma once

#include <functional>
#include <vector>

#include "shoal/engine.h"

namespace shoal::runtime {

// Submits the requests in order and collects what becomes of them. `submit` may wait for room.
std::vector<BatchResult> speak_batch(const std::function<Speech(const SpeechRequest&)>& submit,
                                     std::vector<SpeechRequest> requests, const BatchOptions& options);

}  // namespace shoal::runtime
