// The functions that Triton calls.
#include <chrono>
#include <memory>

#include "base/error.h"
#include "triton/answers.h"
#include "triton/model_settings.h"

namespace shoal::triton {
namespace {

struct Model {
  Engine engine;
  std::unique_ptr<Answers> answers;  // ends before the engine
};

std::string configuration_of(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  check(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char* base = nullptr;
  size_t size = 0;
  TRITONSERVER_Error* error = TRITONSERVER_MessageSerializeToJson(message, &base, &size);
  std::string json(error ? "" : base, error ? 0 : size);
  TRITONSERVER_Error* deleted = TRITONSERVER_MessageDelete(message);
  if (deleted) TRITONSERVER_ErrorDelete(deleted);
  check(error);
  return json;
}

std::string folder_of(TRITONBACKEND_Model* model) {
  TRITONBACKEND_ArtifactType type{};
  const char* location = nullptr;
  check(TRITONBACKEND_ModelRepository(model, &type, &location));
  uint64_t version = 0;
  check(TRITONBACKEND_ModelVersion(model, &version));
  return concat(location, "/", version);
}

Engine started(const ModelSettings& settings) {
  shoal_config* made = nullptr;
  check_call([&](shoal_error* error) { return shoal_config_new(&made, error); });
  const Config config(made);
  for (const auto& [name, value] : settings.settings)
    check_call(
        [&](shoal_error* error) { return shoal_config_set(made, name.c_str(), value.c_str(), error); });
  shoal_engine* engine = nullptr;
  check_call([&](shoal_error* error) { return shoal_engine_new(made, &engine, error); });
  Engine owned(engine);
  check_call([&](shoal_error* error) { return shoal_engine_start(engine, error); });
  return owned;
}

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Everything that comes after the request is through the factory: the request is released at once, so that
// its memory and Triton's place for it are free.
void take_request(Model& model, TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request) {
  const uint64_t start = now_ns();
  Factory factory;
  TRITONSERVER_Error* error = nullptr;
  try {
    TRITONBACKEND_ResponseFactory* made = nullptr;
    check(TRITONBACKEND_ResponseFactoryNew(&made, request));
    factory.reset(made);
    model.answers->begin(factory, read_asked(request));
  } catch (...) {
    error = current_error();
  }
  const uint64_t end = now_ns();
  TRITONSERVER_Error* told = TRITONBACKEND_ModelInstanceReportStatistics(instance, request, error == nullptr,
                                                                         start, start, end, end);
  if (told) TRITONSERVER_ErrorDelete(told);
  if (error && factory)
    answer_with_error(factory.get(), error);
  else if (error)
    TRITONSERVER_ErrorDelete(error);  // without a factory nobody can be told
  factory.reset();
  TRITONSERVER_Error* released = TRITONBACKEND_RequestRelease(request, kTritonReleaseAll);
  if (released) TRITONSERVER_ErrorDelete(released);
}

void log_to_triton(void*, int32_t level, const char* message) {
  log_line(level == SHOAL_LOG_ERROR     ? TRITONSERVER_LOG_ERROR
           : level == SHOAL_LOG_WARNING ? TRITONSERVER_LOG_WARN
           : level == SHOAL_LOG_INFO    ? TRITONSERVER_LOG_INFO
                                        : TRITONSERVER_LOG_VERBOSE,
           message);
}

void check_version() {
  uint32_t major = 0, minor = 0;
  check(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != kTritonMajor || minor < kTritonMinor)
    throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                  concat("expected version ", kTritonMajor, ".", kTritonMinor,
                         " or later of the backend interface, got ", major, ".", minor));
}

void initialize(TRITONBACKEND_Model* handle) {
  const char* name = nullptr;
  check(TRITONBACKEND_ModelName(handle, &name));
  const ModelSettings settings = read_model_settings(configuration_of(handle), folder_of(handle));
  for (const std::string& note : settings.notes) log_line(TRITONSERVER_LOG_INFO, concat(name, ": ", note));
  auto model = std::make_unique<Model>();
  model->engine = started(settings);
  model->answers = std::make_unique<Answers>(model->engine.get(), settings.decoupled, settings.batched);
  check(TRITONBACKEND_ModelSetState(handle, model.get()));
  model.release();
}

template <typename Work>
TRITONSERVER_Error* guarded(const Work& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

}  // namespace
}  // namespace shoal::triton

using namespace shoal::triton;

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend*) {
  return guarded([] {
    check_version();
    check_call([](shoal_error* error) { return shoal_set_log(log_to_triton, nullptr, error); });
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return guarded([&] { initialize(model); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return guarded([&] {
    void* state = nullptr;
    check(TRITONBACKEND_ModelState(model, &state));
    delete static_cast<Model*>(state);
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t count) {
  return guarded([&] {
    TRITONBACKEND_Model* handle = nullptr;
    void* state = nullptr;
    check(TRITONBACKEND_ModelInstanceModel(instance, &handle));
    check(TRITONBACKEND_ModelState(handle, &state));
    for (uint32_t i = 0; i < count; ++i) take_request(*static_cast<Model*>(state), instance, requests[i]);
  });
}
