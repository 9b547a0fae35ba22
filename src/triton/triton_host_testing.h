// A stand-in for Triton: it loads the backend and holds the functions of the server that the backend uses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "triton/triton_api.h"

namespace shoal::triton::testing {

struct TensorData {
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
};

struct ResponseData {
  std::map<std::string, TensorData> outputs;
};

// What came for a request.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ResponseData> responses;
  int finals = 0;     // how often the end was told
  int releases = 0;   // of the request
  std::string error;  // with its code before it: "3: seed: ..."
  std::atomic<bool> cancelled{false};

  // Each fails the test after a minute.
  void wait_for_end();
  void wait_for_responses(size_t count);
  std::string all_bytes(const std::string& output);  // of the responses, one after the other
};

using Parameter = std::variant<std::string, int64_t, bool, double>;

struct HostedRequest {
  std::map<std::string, TensorData> inputs;
  std::vector<std::string> outputs = {"audio", "sample_rate"};
  std::map<std::string, Parameter> parameters;
};

// A text as a BYTES tensor [1].
TensorData text_tensor(const std::string& text);

// A model with its instance, from initialisation to finalisation.
class HostedModel {
 public:
  // `config`: JSON, as Triton writes a config.pbtxt. error() says why it was refused; "" : it was not.
  explicit HostedModel(std::string config);
  ~HostedModel();
  const std::string& error() const { return error_; }
  void finalize();

  // All in one call of the backend.
  std::vector<std::shared_ptr<Outcome>> execute(std::vector<HostedRequest> requests);

 private:
  std::unique_ptr<TRITONBACKEND_Model> model_;
  std::unique_ptr<TRITONBACKEND_ModelInstance> instance_;
  std::string error_;
};

// Errors, messages, factories and responses of the backend that nobody has deleted; requests not released.
int living_objects();
std::string logged();

}  // namespace shoal::triton::testing
