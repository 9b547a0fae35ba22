#include "triton/answers.h"

#include <array>
#include <chrono>
#include <cstring>
#include <vector>

namespace shoal::triton {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kLookMs = 20, kIdleMs = 200;  // between looks for cancelled requests

// A response being filled; one that is not sent is deleted.
class Response {
 public:
  Response(TRITONBACKEND_ResponseFactory* factory, bool batched) : batched_(batched) {
    check(TRITONBACKEND_ResponseNewFromFactory(&response_, factory));
  }
  ~Response() {
    TRITONSERVER_Error* error = response_ ? TRITONBACKEND_ResponseDelete(response_) : nullptr;
    if (error) TRITONSERVER_ErrorDelete(error);
  }
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // `count` elements, `bytes` in all.
  void add(const char* name, TRITONSERVER_DataType type, size_t count, const void* data, size_t bytes) {
    const std::array<int64_t, 2> shape = {1, static_cast<int64_t>(count)};
    TRITONBACKEND_Output* output = nullptr;
    check(TRITONBACKEND_ResponseOutput(response_, &output, name, type,
                                       batched_ ? shape.data() : shape.data() + 1, batched_ ? 2 : 1));
    void* buffer = nullptr;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    check(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "outputs need memory of the host");
    if (bytes > 0) std::memcpy(buffer, data, bytes);
  }

  void send(uint32_t flags) {
    TRITONBACKEND_Response* response = response_;
    response_ = nullptr;
    check(TRITONBACKEND_ResponseSend(response, flags, nullptr));
  }

 private:
  const bool batched_;
  TRITONBACKEND_Response* response_ = nullptr;
};

std::string taken(shoal_buffer* buffer) {
  const Buffer owned(buffer);
  return {static_cast<const char*>(shoal_buffer_data(buffer)), shoal_buffer_size(buffer)};
}

}  // namespace

struct Answers::Stream {
  Factory factory;
  Asked asked;
  Speech speech;
  Encoder encoder;
  std::vector<float> samples;  // of a whole answer
  bool cancelled = false;

  int32_t rate_hz() const {
    int32_t hz = 0;
    check_call([&](shoal_error* error) { return shoal_speech_sample_rate(speech.get(), &hz, error); });
    return hz;
  }

  std::string encoded(const float* data, size_t count) {
    shoal_buffer* bytes = nullptr;
    if (!encoder) {
      shoal_encoder* made = nullptr;
      const int32_t hz = rate_hz();
      check_call(
          [&](shoal_error* error) { return shoal_encoder_new(asked.format.c_str(), hz, 0, &made, error); });
      encoder.reset(made);
    }
    check_call(
        [&](shoal_error* error) { return shoal_encoder_write(encoder.get(), data, count, &bytes, error); });
    return taken(bytes);
  }

  void respond(const float* data, size_t count, const std::string& file, bool batched, uint32_t flags) {
    Response response(factory.get(), batched);
    if (asked.audio) response.add("audio", TRITONSERVER_TYPE_FP32, count, data, count * sizeof(float));
    if (asked.audio_file) {
      const auto length = static_cast<uint32_t>(file.size());
      std::string element(sizeof length, '\0');
      std::memcpy(element.data(), &length, sizeof length);
      element += file;
      response.add("audio_file", TRITONSERVER_TYPE_BYTES, 1, element.data(), element.size());
    }
    const int32_t hz = rate_hz();
    if (asked.sample_rate) response.add("sample_rate", TRITONSERVER_TYPE_INT32, 1, &hz, sizeof hz);
    response.send(flags);
  }

  void take_piece(const float* data, size_t count, bool decoupled, bool batched) {
    if (!decoupled) {
      samples.insert(samples.end(), data, data + count);
      return;
    }
    const std::string file = asked.audio_file ? encoded(data, count) : "";
    if (asked.audio || asked.sample_rate || !file.empty()) respond(data, count, file, batched, 0);
  }

  void end(bool decoupled, bool batched) {
    if (!decoupled) return end_whole(batched);
    if (asked.audio_file && encoder) {
      shoal_buffer* bytes = nullptr;
      check_call([&](shoal_error* error) { return shoal_encoder_finish(encoder.get(), &bytes, error); });
      const std::string last = taken(bytes);
      if (!last.empty()) respond(nullptr, 0, last, batched, 0);
    }
    check(TRITONBACKEND_ResponseFactorySendFlags(factory.get(), kTritonFinalResponse));
  }

  void end_whole(bool batched) {
    if (samples.empty())
      throw Failure(TRITONSERVER_ERROR_INVALID_ARG,
                    "text_input: no speech came of it; it or max_new_tokens may be too short");
    std::string file;
    if (asked.audio_file) {
      shoal_buffer* bytes = nullptr;
      const int32_t hz = rate_hz();
      check_call([&](shoal_error* error) {
        return shoal_encode_sound(asked.format.c_str(), hz, 0, samples.data(), samples.size(), &bytes, error);
      });
      file = taken(bytes);
    }
    respond(samples.data(), samples.size(), file, batched, kTritonFinalResponse);
  }

  // Whether it has ended.
  bool advance(bool decoupled, bool batched) {
    while (true) {
      shoal_buffer* samples_now = nullptr;
      shoal_error error = SHOAL_ERROR_INIT;
      const shoal_code code = shoal_speech_next(speech.get(), 0, &samples_now, &error);
      if (code == SHOAL_NOT_YET) return false;
      check(code, error);
      if (code == SHOAL_END) {
        end(decoupled, batched);
        return true;
      }
      const Buffer owned(samples_now);
      take_piece(static_cast<const float*>(shoal_buffer_data(samples_now)),
                 shoal_buffer_size(samples_now) / sizeof(float), decoupled, batched);
    }
  }
};

void answer_with_error(TRITONBACKEND_ResponseFactory* factory, TRITONSERVER_Error* error) {
  TRITONBACKEND_Response* response = nullptr;
  TRITONSERVER_Error* failed = TRITONBACKEND_ResponseNewFromFactory(&response, factory);
  if (!failed) failed = TRITONBACKEND_ResponseSend(response, kTritonFinalResponse, error);
  if (failed) TRITONSERVER_ErrorDelete(failed);
  TRITONSERVER_ErrorDelete(error);
}

Answers::Answers(shoal_engine* engine, bool decoupled, bool batched)
    : engine_(engine), decoupled_(decoupled), batched_(batched) {
  shoal_mailbox* mailbox = nullptr;
  check_call([&](shoal_error* error) { return shoal_mailbox_new(&mailbox, error); });
  mailbox_.reset(mailbox);
  thread_ = std::thread([this] { run(); });
}

Answers::~Answers() {
  ends_ = true;
  thread_.join();
}

void Answers::begin(Factory& factory, Asked asked) {
  auto stream = std::make_unique<Stream>();
  if (decoupled_)
    check_call([&](shoal_error* error) {
      return shoal_request_set(asked.request.get(), "delivery", "streaming", error);
    });
  shoal_speech* speech = nullptr;
  check_call([&](shoal_error* error) {
    return shoal_engine_submit(engine_, asked.request.get(), nullptr, &speech, error);
  });
  stream->speech.reset(speech);
  stream->asked = std::move(asked);
  // It must be there before its first token is taken, and its factory with it.
  const std::lock_guard lock(mutex_);
  const uint64_t token = ++last_token_;
  check_call([&](shoal_error* error) { return shoal_speech_watch(speech, mailbox_.get(), token, error); });
  stream->factory = std::move(factory);
  streams_.emplace(token, std::move(stream));
}

void Answers::advance(uint64_t token) {
  Stream* stream = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(token);
    if (found == streams_.end()) return;
    stream = found->second.get();
  }
  try {
    if (!stream->advance(decoupled_, batched_)) return;
  } catch (...) {
    answer_with_error(stream->factory.get(), current_error());
  }
  std::unique_ptr<Stream> ended;
  const std::lock_guard lock(mutex_);
  ended = std::move(streams_.extract(token).mapped());
}

void Answers::look_for_cancelled(bool all) {
  const std::lock_guard lock(mutex_);
  for (const auto& [token, stream] : streams_) {
    if (stream->cancelled) continue;
    TRITONSERVER_Error* error =
        TRITONBACKEND_ResponseFactoryIsCancelled(stream->factory.get(), &stream->cancelled);
    if (error) TRITONSERVER_ErrorDelete(error);
    stream->cancelled |= all;
    if (stream->cancelled) shoal_speech_cancel(stream->speech.get(), nullptr);
  }
}

void Answers::run() {
  auto looked = Clock::now();
  while (true) {
    const auto is_idle = [this] {
      const std::lock_guard lock(mutex_);
      return streams_.empty();
    };
    const bool idle = is_idle();
    if (idle && ends_) return;
    std::array<uint64_t, 64> tokens{};
    size_t count = 0;
    shoal_mailbox_take(mailbox_.get(), idle ? kIdleMs : kLookMs, tokens.data(), tokens.size(), &count,
                       nullptr);
    for (size_t i = 0; i < count; ++i) advance(tokens[i]);
    if (Clock::now() - looked < std::chrono::milliseconds(kLookMs)) continue;
    looked = Clock::now();
    look_for_cancelled(ends_);
  }
}

}  // namespace shoal::triton
