// What the tests of the C interface share: handles that free themselves, and a tiny model.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "shoal/engine_config.h"
#include "shoal/shoal.h"

namespace shoal::capi::testing {

template <auto free_function>
struct FreeWith {
  template <typename T>
  void operator()(T* handle) const {
    free_function(handle);
  }
};
using Buffer = std::unique_ptr<shoal_buffer, FreeWith<shoal_buffer_free>>;
using Config = std::unique_ptr<shoal_config, FreeWith<shoal_config_free>>;
using Request = std::unique_ptr<shoal_request, FreeWith<shoal_request_free>>;
using CEngine = std::unique_ptr<shoal_engine, FreeWith<shoal_engine_free>>;
using CSpeech = std::unique_ptr<shoal_speech, FreeWith<shoal_speech_free>>;
using Mail = std::unique_ptr<shoal_mailbox, FreeWith<shoal_mailbox_free>>;
using CBatch = std::unique_ptr<shoal_batch, FreeWith<shoal_batch_free>>;
using Item = std::unique_ptr<shoal_item, FreeWith<shoal_item_free>>;
using CVoices = std::unique_ptr<shoal_voices, FreeWith<shoal_voices_free>>;
using CEncoder = std::unique_ptr<shoal_encoder, FreeWith<shoal_encoder_free>>;

// Calls function(arguments..., &out, &error), expects success and owns the result.
template <typename Owner, typename Function, typename... Arguments>
Owner made(Function function, Arguments... arguments) {
  typename Owner::pointer out = nullptr;
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(function(arguments..., &out, &error), SHOAL_OK) << error.message;
  return Owner(out);
}

template <typename T>
std::vector<T> values_of(const Buffer& buffer) {
  const auto* const data = static_cast<const T*>(shoal_buffer_data(buffer.get()));
  return {data, data + shoal_buffer_size(buffer.get()) / sizeof(T)};
}
inline std::string text_of(const Buffer& buffer) {
  return {static_cast<const char*>(shoal_buffer_data(buffer.get())), shoal_buffer_size(buffer.get())};
}
inline Json json_of(const Buffer& buffer) { return Json::parse(text_of(buffer), "a report"); }

// Random weights: it hardly ever ends by itself, so max_new_tokens says how long it speaks.
inline const std::vector<std::pair<const char*, std::string>>& tiny_settings() {
  static const std::vector<std::pair<const char*, std::string>> settings = {
      {"model", std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a"},
      {"device", "cpu"},
      {"precision", "float32"},
      {"threads", "2"},
      {"cache_dir", "none"},
      {"references_dir", "/nonexistent"},
      {"warm_up", "false"},
      {"request_timeout_s", "0"}};
  return settings;
}

inline Config tiny_config() {
  Config config = made<Config>(shoal_config_new);
  for (const auto& [name, value] : tiny_settings())
    EXPECT_EQ(shoal_config_set(config.get(), name, value.c_str(), nullptr), SHOAL_OK) << name;
  return config;
}

inline CEngine started_engine() {
  CEngine engine = made<CEngine>(shoal_engine_new, tiny_config().get());
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_engine_start(engine.get(), &error), SHOAL_OK) << error.message;
  return engine;
}

// With an end, soon.
inline Request short_request(const char* seed = "3", const char* frames = "12") {
  Request request = made<Request>(shoal_request_new);
  shoal_request_set(request.get(), "text", "A fish.", nullptr);
  shoal_request_set(request.get(), "seed", seed, nullptr);
  shoal_request_set(request.get(), "max_new_tokens", frames, nullptr);
  return request;
}

// Speaks for minutes, even if the test is not given a processor for seconds.
inline Request endless_request() {
  Request request = short_request("3", "0");
  std::string text = "A fish.";
  for (int i = 0; i < 200; ++i) text += " And another fish.";
  shoal_request_set(request.get(), "text", text.c_str(), nullptr);
  return request;
}

inline CSpeech submitted(const CEngine& engine, const Request& request) {
  return made<CSpeech>(shoal_engine_submit, engine.get(), request.get(), nullptr);
}

inline std::vector<float> all_samples(const CSpeech& speech) {
  return values_of<float>(made<Buffer>(shoal_speech_read_all, speech.get()));
}

}  // namespace shoal::capi::testing
