// The error for a name that does not exist here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace shoal::server {

// "there is none called "clra"; the nearest is "clara"; see /v1/audio/voices": suggests the closest of
// `names` if one is close enough. The name comes from a client: it is shortened and made printable.
std::string none_called(std::string_view wanted, std::span<const std::string> names, std::string_view see);

// The name in an error of the engine about a voice that is not there; absent for any other error.
std::optional<std::string> unknown_voice_of(const Error& error);

}  // namespace shoal::server
