// Many requests, one answer.
#pragma once

#include <functional>
#include <vector>

#include "shoal/engine.h"

namespace shoal::runtime {

// Hands a request to the engine. It may wait for room, and then calls `meanwhile` again and again.
using SubmitItem = std::function<Speech(const SpeechRequest&, std::function<void()> meanwhile)>;

// Submits the requests in order and collects their results.
std::vector<BatchResult> speak_batch(const SubmitItem& submit, std::vector<SpeechRequest> requests,
                                     const BatchOptions& options);

}  // namespace shoal::runtime
