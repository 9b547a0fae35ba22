// What a request of Triton's asks for.
#pragma once

#include <string>

#include "triton/calls.h"

namespace shoal::triton {

struct Asked {
  Request request;
  bool audio = false, audio_file = false, sample_rate = false;  // the outputs that are wanted
  std::string format = "wav";                                   // of audio_file
};

// Copies everything: the request may be released then. Throws Failure, Error.
Asked read_asked(TRITONBACKEND_Request* request);

}  // namespace shoal::triton
