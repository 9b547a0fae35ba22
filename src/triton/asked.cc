#include "triton/asked.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "server/body/infer_body.h"

namespace shoal::triton {
namespace {

constexpr int64_t kMostElements = 16;

// Parameters are called as in the HTTP routes; libshoal calls three of them otherwise.
constexpr std::array kKnown = {"voice",           "seed",
                               "temperature",     "top_p",
                               "top_k",           "repetition_penalty",
                               "max_new_tokens",  "chunk_length",
                               "speed",           "special_tokens",
                               "strict_phonemes", "strict",
                               "timeout_ms"};
constexpr std::array<std::pair<std::string_view, const char*>, 3> kRenamed = {
    {{"normalize", "normalise"}, {"lang_code", "language"}, {"volume_multiplier", "volume"}}};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Failure(TRITONSERVER_ERROR_INVALID_ARG, printable(name) + ": " + why);
}

void set_field(shoal_request* request, const char* field, const std::string& value) {
  if (value.find('\0') != std::string::npos) refuse(field, "expected text without a NUL");
  check_call([&](shoal_error* error) { return shoal_request_set(request, field, value.c_str(), error); });
}

std::string bytes_of(TRITONBACKEND_Input* input, const std::string& name, uint32_t buffers) {
  std::string bytes;
  for (uint32_t i = 0; i < buffers; ++i) {
    const void* data = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    check(TRITONBACKEND_InputBuffer(input, i, &data, &size, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU) refuse(name, "expected memory of the host");
    bytes.append(static_cast<const char*>(data), size);
  }
  return bytes;
}

struct TextTensor {
  std::string name;
  std::vector<std::string> elements;
};

TextTensor tensor_at(TRITONBACKEND_Request* request, uint32_t index) {
  TRITONBACKEND_Input* input = nullptr;
  check(TRITONBACKEND_RequestInputByIndex(request, index, &input));
  const char* name = nullptr;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  const int64_t* shape = nullptr;
  uint32_t dims = 0, buffers = 0;
  uint64_t size = 0;
  check(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &dims, &size, &buffers));
  if (type != TRITONSERVER_TYPE_BYTES) refuse(name, "expected BYTES");
  int64_t count = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    if (shape[i] < 0 || shape[i] > kMostElements || (count *= shape[i]) > kMostElements)
      refuse(name, concat("expected at most ", kMostElements, " elements"));
  }
  const std::string bytes = bytes_of(input, name, buffers);
  return {name, server::read_bytes_elements(bytes, count, name)};
}

void take_inputs(TRITONBACKEND_Request* request, shoal_request* into) {
  uint32_t count = 0;
  check(TRITONBACKEND_RequestInputCount(request, &count));
  std::vector<std::string> texts, clips, words;
  for (uint32_t i = 0; i < count; ++i) {
    TextTensor tensor = tensor_at(request, i);
    auto* const list = tensor.name == "text_input"        ? &texts
                       : tensor.name == "reference_audio" ? &clips
                       : tensor.name == "reference_text"  ? &words
                                                          : nullptr;
    if (!list) refuse(tensor.name, "there is no such input");
    *list = std::move(tensor.elements);
  }
  if (texts.size() != 1)
    refuse("text_input", concat("expected one text, found ", texts.size(), ": send a request for each"));
  if (clips.size() != words.size())
    refuse("reference_text",
           concat("expected the words of each clip, found ", words.size(), " for ", clips.size()));
  set_field(into, "text", texts.front());
  for (size_t i = 0; i < clips.size(); ++i) {
    if (words[i].find('\0') != std::string::npos) refuse("reference_text", "expected text without a NUL");
    check_call([&](shoal_error* error) {
      return shoal_request_add_reference(into, clips[i].data(), clips[i].size(), words[i].c_str(), error);
    });
  }
}

const char* field_of(const std::string& parameter) {
  for (const char* name : kKnown)
    if (parameter == name) return name;
  for (const auto& [name, field] : kRenamed)
    if (parameter == name) return field;
  refuse(parameter, "there is no such parameter; docs/DEPLOY.md lists them");
}

// With every digit that tells it from others.
std::string number_text(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), number).ptr};
}

std::string value_text(const std::string& name, TRITONSERVER_ParameterType type, const void* value) {
  switch (static_cast<int>(type)) {
    case TRITONSERVER_PARAMETER_STRING:
      return static_cast<const char*>(value);
    case TRITONSERVER_PARAMETER_INT:
      return concat(*static_cast<const int64_t*>(value));
    case TRITONSERVER_PARAMETER_BOOL:
      return *static_cast<const bool*>(value) ? "true" : "false";
    case TRITONSERVER_PARAMETER_DOUBLE:
      return number_text(*static_cast<const double*>(value));
    default:
      refuse(name, "expected a text, a number or a truth");
  }
}

void take_parameters(TRITONBACKEND_Request* request, Asked& into) {
  set_field(into.request.get(), "special_tokens", "false");
  uint32_t count = 0;
  check(TRITONBACKEND_RequestParameterCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    check(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
    const std::string name = key;
    if (name.starts_with("triton_")) continue;  // the server's own: triton_enable_empty_final_response
    const std::string text = value_text(name, type, value);
    if (name == "response_format") {
      into.format = text;
      continue;
    }
    set_field(into.request.get(), field_of(name), text);
  }
}

void take_outputs(TRITONBACKEND_Request* request, Asked& into) {
  uint32_t count = 0;
  check(TRITONBACKEND_RequestOutputCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    check(TRITONBACKEND_RequestOutputName(request, i, &name));
    bool* const wanted = std::string_view(name) == "audio"         ? &into.audio
                         : std::string_view(name) == "audio_file"  ? &into.audio_file
                         : std::string_view(name) == "sample_rate" ? &into.sample_rate
                                                                   : nullptr;
    if (!wanted) refuse(name, "there is no such output");
    *wanted = true;
  }
  if (!into.audio_file) return;
  shoal_encoder* encoder = nullptr;  // an unknown format is refused before anything is spoken
  check_call(
      [&](shoal_error* error) { return shoal_encoder_new(into.format.c_str(), 24000, 0, &encoder, error); });
  Encoder(encoder).reset();
}

}  // namespace

Asked read_asked(TRITONBACKEND_Request* from) {
  shoal_request* request = nullptr;
  check_call([&](shoal_error* error) { return shoal_request_new(&request, error); });
  Asked asked{.request = Request(request)};
  take_inputs(from, request);
  take_parameters(from, asked);
  take_outputs(from, asked);
  return asked;
}

}  // namespace shoal::triton
