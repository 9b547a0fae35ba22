// Why a request counts as failed.
#pragma once

#include <string>

namespace shoal::load {

struct Failure {
  // A stable name for files: connect, certificate, tls, no_answer, bad_http, status_NNN, error_CODE (of an
  // item of a batch, or on a WebSocket), not_sound, no_rate, rate_contradiction, bad_sound, no_sound,
  // cut_off, timeout, endless.
  std::string kind;
  std::string detail;  // a sentence for people
};

}  // namespace shoal::load
