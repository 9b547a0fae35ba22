// Many texts, one answer, for each API that has such a call.
#pragma once

#include "server/routes/packed_answer.h"
#include "server/routes/services.h"

namespace shoal::server {

// How an API writes a batch. The names are literals.
struct BatchForm {
  const char* items = "items";      // the list of texts in the body
  const char* results = "results";  // that of the answer
  Value (*body_of)(const Request& request) =
      server::body_of;  // with the list and the fields for all items side by side
};

// One object with the results in order, each sent when all before it have been; with Accept:
// application/x-ndjson a line for each as they come. Throws the Errors of read_batch.
Task<> answer_batch(Services& services, Exchange& exchange, BatchForm form);

}  // namespace shoal::server
