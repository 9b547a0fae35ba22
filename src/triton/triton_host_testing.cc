#include "triton/triton_host_testing.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdexcept>

using shoal::triton::testing::HostedRequest;
using shoal::triton::testing::Outcome;
using shoal::triton::testing::ResponseData;
using shoal::triton::testing::TensorData;

namespace {
std::atomic<int> living{0};
std::mutex log_mutex;
std::string log_lines;
struct Counted {
  Counted() { ++living; }
  ~Counted() { --living; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};
}  // namespace

struct TRITONSERVER_Error : Counted {
  TRITONSERVER_Error_Code code{};
  std::string message;
};
struct TRITONSERVER_Message : Counted {
  std::string json;
};
struct TRITONBACKEND_Model {
  std::string config, location;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model = nullptr;
};
struct TRITONBACKEND_Input {
  std::string name;
  TensorData data;
};
struct TRITONBACKEND_Request : Counted {
  std::vector<TRITONBACKEND_Input> inputs;
  HostedRequest asked;
  std::shared_ptr<Outcome> outcome;
};
struct TRITONBACKEND_ResponseFactory : Counted {
  std::shared_ptr<Outcome> outcome;
};
struct TRITONBACKEND_Output {
  TensorData* data = nullptr;
};
struct TRITONBACKEND_Response : Counted {
  std::shared_ptr<Outcome> outcome;
  ResponseData data;
  std::deque<TRITONBACKEND_Output> outputs;
};

namespace {

void end(Outcome& outcome, uint32_t flags) {
  if (flags & kTritonFinalResponse) ++outcome.finals;
  outcome.changed.notify_all();
}

}  // namespace

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message) {
  auto* error = new TRITONSERVER_Error;
  error->code = code;
  error->message = message;
  return error;
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->message.c_str(); }
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char*, const int,
                                            const char* message) {
  const std::lock_guard lock(log_mutex);
  log_lines += std::string(message) + "\n";
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message, const char** base,
                                                        size_t* byte_size) {
  *base = message->json.data();
  *byte_size = message->json.size();
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = 1;
  *minor = 19;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model*, const char** name) {
  *name = "voice";
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type, const char** location) {
  *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = model->location.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, const uint32_t,
                                              TRITONSERVER_Message** config) {
  *config = new TRITONSERVER_Message;
  (*config)->json = model->config;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance*,
                                                                TRITONBACKEND_Request* request, const bool,
                                                                const uint64_t, const uint64_t,
                                                                const uint64_t, const uint64_t) {
  EXPECT_EQ(request->outcome->releases, 0) << "a request is reported before it is released";
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request, uint32_t* count) {
  *count = static_cast<uint32_t>(request->inputs.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request, const uint32_t index,
                                                      TRITONBACKEND_Input** input) {
  *input = &request->inputs.at(index);
  return nullptr;
}
// In two buffers where there are two bytes, as Triton may give it.
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type, const int64_t** shape,
                                                  uint32_t* dims_count, uint64_t* byte_size,
                                                  uint32_t* buffer_count) {
  *name = input->name.c_str();
  *type = input->data.type;
  *shape = input->data.shape.data();
  *dims_count = static_cast<uint32_t>(input->data.shape.size());
  *byte_size = input->data.bytes.size();
  *buffer_count = 2;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* byte_size,
                                              TRITONSERVER_MemoryType* memory, int64_t* memory_id) {
  const size_t half = input->data.bytes.size() / 2;
  *buffer = input->data.bytes.data() + (index ? half : 0);
  *byte_size = index ? input->data.bytes.size() - half : half;
  *memory = TRITONSERVER_MEMORY_CPU;
  *memory_id = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request, uint32_t* count) {
  *count = static_cast<uint32_t>(request->asked.outputs.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, const uint32_t index,
                                                    const char** name) {
  *name = request->asked.outputs.at(index).c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request, uint32_t* count) {
  *count = static_cast<uint32_t>(request->asked.parameters.size());
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request, const uint32_t index,
                                                   const char** key, TRITONSERVER_ParameterType* type,
                                                   const void** value) {
  const auto& [name, parameter] = *std::next(request->asked.parameters.begin(), index);
  *key = name.c_str();
  *type = static_cast<TRITONSERVER_ParameterType>(parameter.index());  // in the order of Parameter
  *value = std::visit([](const auto& held) -> const void* { return &held; }, parameter);
  if (const auto* text = std::get_if<std::string>(&parameter)) *value = text->c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags) {
  EXPECT_EQ(flags, kTritonReleaseAll);
  ++request->outcome->releases;
  delete request;  // the backend may not look at it again: its memory says so under a sanitizer
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory** factory,
                                                     TRITONBACKEND_Request* request) {
  *factory = new TRITONBACKEND_ResponseFactory;
  (*factory)->outcome = request->outcome;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory* factory) {
  delete factory;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory* factory,
                                                           const uint32_t flags) {
  const std::lock_guard lock(factory->outcome->mutex);
  end(*factory->outcome, flags);
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory* factory,
                                                             bool* is_cancelled) {
  *is_cancelled = factory->outcome->cancelled;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response** response,
                                                         TRITONBACKEND_ResponseFactory* factory) {
  *response = new TRITONBACKEND_Response;
  (*response)->outcome = factory->outcome;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  delete response;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType type, const int64_t* shape,
                                                 const uint32_t dims_count) {
  TensorData& data = response->data.outputs[name];
  data.type = type;
  data.shape.assign(shape, shape + dims_count);
  *output = &response->outputs.emplace_back(TRITONBACKEND_Output{&data});
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t byte_size, TRITONSERVER_MemoryType* memory,
                                               int64_t* memory_id) {
  output->data->bytes.resize(byte_size);
  *buffer = output->data->bytes.data();
  *memory = TRITONSERVER_MEMORY_CPU;
  *memory_id = 0;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, const uint32_t flags,
                                               TRITONSERVER_Error* error) {
  {
    Outcome& outcome = *response->outcome;
    const std::lock_guard lock(outcome.mutex);
    EXPECT_EQ(outcome.finals, 0) << "nothing comes after the end";
    if (error)
      outcome.error = std::to_string(error->code) + ": " + error->message;
    else
      outcome.responses.push_back(std::move(response->data));
    end(outcome, flags);
  }
  delete response;
  return nullptr;
}

namespace shoal::triton::testing {
namespace {

constexpr std::chrono::minutes kPatience{1};

template <typename Function>
Function* function_of(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<Function*>(found);
}

struct Backend {
  void* library = dlopen(SHOAL_TRITON_BACKEND, RTLD_NOW | RTLD_LOCAL);
  const char* problem = library ? nullptr : dlerror();
  decltype(TRITONBACKEND_ModelInitialize)* initialize = nullptr;
  decltype(TRITONBACKEND_ModelFinalize)* finalize = nullptr;
  decltype(TRITONBACKEND_ModelInstanceExecute)* execute = nullptr;

  Backend() {
    if (problem) throw std::runtime_error(problem);
    initialize =
        function_of<decltype(TRITONBACKEND_ModelInitialize)>(library, "TRITONBACKEND_ModelInitialize");
    finalize = function_of<decltype(TRITONBACKEND_ModelFinalize)>(library, "TRITONBACKEND_ModelFinalize");
    execute = function_of<decltype(TRITONBACKEND_ModelInstanceExecute)>(library,
                                                                        "TRITONBACKEND_ModelInstanceExecute");
    TRITONSERVER_Error* error =
        function_of<decltype(TRITONBACKEND_Initialize)>(library, "TRITONBACKEND_Initialize")(nullptr);
    if (error) throw std::runtime_error(error->message);
  }
};

const Backend& backend() {
  static const Backend loaded;
  return loaded;
}

std::string taken(TRITONSERVER_Error* error) {
  if (!error) return "";
  std::string text = std::to_string(error->code) + ": " + error->message;
  delete error;
  return text;
}

}  // namespace

void Outcome::wait_for_end() {
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return finals > 0; })) << "no end";
}

void Outcome::wait_for_responses(size_t count) {
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return responses.size() >= count || finals > 0; }));
}

std::string Outcome::all_bytes(const std::string& output) {
  const std::lock_guard lock(mutex);
  std::string all;
  for (ResponseData& response : responses) all += response.outputs[output].bytes;
  return all;
}

TensorData text_tensor(const std::string& text) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(text.size() >> shift);
  return {TRITONSERVER_TYPE_BYTES, {1}, bytes + text};
}

HostedModel::HostedModel(std::string config)
    : model_(std::make_unique<TRITONBACKEND_Model>()),
      instance_(std::make_unique<TRITONBACKEND_ModelInstance>()) {
  model_->config = std::move(config);
  model_->location = "/nonexistent/voice";
  instance_->model = model_.get();
  error_ = taken(backend().initialize(model_.get()));
}

HostedModel::~HostedModel() { finalize(); }

void HostedModel::finalize() {
  if (!model_->state) return;
  EXPECT_EQ(taken(backend().finalize(model_.get())), "");
  model_->state = nullptr;
}

std::vector<std::shared_ptr<Outcome>> HostedModel::execute(std::vector<HostedRequest> requests) {
  std::vector<std::shared_ptr<Outcome>> outcomes;
  std::vector<TRITONBACKEND_Request*> handles;
  for (HostedRequest& request : requests) {
    auto* handle = new TRITONBACKEND_Request;
    for (auto& [name, data] : request.inputs) handle->inputs.push_back({name, std::move(data)});
    handle->asked = std::move(request);
    handle->outcome = std::make_shared<Outcome>();
    outcomes.push_back(handle->outcome);
    handles.push_back(handle);
  }
  EXPECT_EQ(taken(backend().execute(instance_.get(), handles.data(), static_cast<uint32_t>(handles.size()))),
            "");
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->releases, 1);
  return outcomes;
}

int living_objects() { return living; }

std::string logged() {
  const std::lock_guard lock(log_mutex);
  return log_lines;
}

}  // namespace shoal::triton::testing
