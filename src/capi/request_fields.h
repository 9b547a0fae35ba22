// The fields of a request by name.
#pragma once

#include "server/body/value.h"
#include "shoal/speech_request.h"

namespace shoal::capi {

// `text` null: the default. Throws Error(invalid_argument): no such field, not a value of its type.
void set_field(SpeechRequest& request, std::string_view name, const char* text);

// [{"name", "type", "default", "help"}], in order.
server::Value fields_json();

}  // namespace shoal::capi
