// Calls between the two C interfaces: Triton's, and that of libshoal (shoal.h).
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "shoal/shoal.h"
#include "triton/triton_api.h"

namespace shoal::triton {

// What went wrong, in Triton's terms.
class Failure : public std::runtime_error {
 public:
  Failure(TRITONSERVER_Error_Code code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  TRITONSERVER_Error_Code code() const { return code_; }

 private:
  TRITONSERVER_Error_Code code_;
};

TRITONSERVER_Error_Code code_of(shoal_code code);

// Each throws the Failure that a call has returned. The first deletes it.
void check(TRITONSERVER_Error* error);
void check(shoal_code code, const shoal_error& error);
// check_call([&](shoal_error* error) { return shoal_...(..., error); })
template <typename Call>
void check_call(const Call& call) {
  shoal_error error = SHOAL_ERROR_INIT;
  check(call(&error), error);
}

// The exception that is being handled, as Triton reports it; the caller's to delete.
TRITONSERVER_Error* current_error();
void log_line(TRITONSERVER_LogLevel level, const std::string& line);

template <auto kFree>
struct Free {
  void operator()(auto* handle) const { kFree(handle); }
};
using Buffer = std::unique_ptr<shoal_buffer, Free<shoal_buffer_free>>;
using Config = std::unique_ptr<shoal_config, Free<shoal_config_free>>;
using Request = std::unique_ptr<shoal_request, Free<shoal_request_free>>;
using Engine = std::unique_ptr<shoal_engine, Free<shoal_engine_free>>;
using Speech = std::unique_ptr<shoal_speech, Free<shoal_speech_free>>;
using Encoder = std::unique_ptr<shoal_encoder, Free<shoal_encoder_free>>;
using Mailbox = std::unique_ptr<shoal_mailbox, Free<shoal_mailbox_free>>;

}  // namespace shoal::triton
