#include "server/routes/voice_errors.h"

#include <algorithm>

#include "server/observe/log_sink.h"
#include "server/routes/unknown_name.h"

namespace shoal::server {
namespace {

bool names_a_voice_file(const Services& services, const Error& error) {
  return std::ranges::any_of(services.models.all(), [&error](const ServedModel& model) {
    const std::string dir = model.engine->config().references_dir;
    return !dir.empty() && error.message().find(dir + "/") != std::string::npos;
  });
}

}  // namespace

HttpError told_of_voices(Services& services, const Request& request, const Error& error,
                         const LookedIn& where) {
  HttpError known = http_error(error);
  if (const auto wanted = unknown_voice_of(error)) {
    std::vector<std::string> names;
    for (VoiceInfo& voice : where.voices.list())
      if (!voice.fixed) names.push_back(std::move(voice.name));
    known.message = "voice: " + none_called(*wanted, names, where.listed_at);
  } else if (error.code() == ErrorCode::resource_exhausted) {  // only the disk can be full here
    known.status = 507;
    known.retry_after_s.reset();
    known.message = "the disk for voices is full; the server's log says more, under the request id";
  } else if (known.status < 500 && names_a_voice_file(services, error)) {
    log_failure(request, error.message());
    known.message = "the voice cannot be changed; the server's log says why, under the request id";
  }
  return known;
}

}  // namespace shoal::server
