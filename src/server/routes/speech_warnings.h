// Warnings about accepted requests (SpeechSummary::warnings), in the form of answers.
#pragma once

#include <string>
#include <vector>

#include "server/body/value.h"

namespace shoal::server {

// ["...", "..."] in ASCII, as a header can carry it: the first few.
std::string warnings_header(const std::vector<std::string>& warnings);
// The same as a value of JSON, all of them.
Value warnings_value(const std::vector<std::string>& warnings);

}  // namespace shoal::server
