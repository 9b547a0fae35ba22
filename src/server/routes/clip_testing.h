// Clips and packed bodies for the routes' tests.
#pragma once

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "audio/encoder.h"
#include "audio/sounds_testing.h"
#include "server/routes/routes_testing.h"

namespace shoal::server::testing {

inline std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file with something like a voice in it.
inline std::string clip_file(double seconds, audio::Format format = audio::Format::wav) {
  return as_text(audio::encode(format, {.sample_rate_hz = 8000, .rewritable_header = true},
                               audio::voice_like(8000, seconds)));
}

// A flac of hours of silence: about one byte per 40 samples.
inline std::string long_flac(int seconds) {
  std::string file;
  const auto encoder = audio::make_encoder(
      audio::Format::flac, {.sample_rate_hz = 8000}, [&](std::span<const std::byte> bytes) {
        file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      });
  const std::vector<float> second(8000);
  for (int i = 0; i < seconds; ++i) encoder->write(second);
  encoder->finish();
  return file;
}

// The same flac, saying that it has 2^36 - 1 samples (the field of 36 bits at byte 21 of the file).
inline std::string claims_hours(std::string flac) {
  flac[21] = static_cast<char>(static_cast<unsigned char>(flac[21]) | 0x0F);
  for (size_t at = 22; at < 26; ++at) flac[at] = '\xFF';
  return flac;
}

inline Request packed_request(std::string method, std::string path, const Value& body) {
  Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.headers.add("Content-Type", "application/msgpack");
  request.body = write_msgpack(body);
  request.id = "test-1";
  return request;
}

inline Value text_value(std::string text) { return {std::move(text)}; }
inline Value bytes_value(std::string bytes) { return {Bytes{std::move(bytes)}}; }

// The member of an answer that must have it.
inline const Value& member(const Value& object, std::string_view name) {
  const Value* found = object.find(name);
  if (!found) {
    ADD_FAILURE() << "no member " << name << " in " << write_json(object).substr(0, 300);
    static const Value kNone;
    return kNone;
  }
  return *found;
}
inline std::string text_of(const Value& object, std::string_view name) {
  const std::string* text = member(object, name).as<std::string>();
  return text ? *text : "(no text)";
}
inline bool is_true(const Value& object, std::string_view name) {
  return member(object, name) == Value{true};
}
inline const Value::Array& array_of(const Value& object, std::string_view name) {
  static const Value::Array kNone;
  const auto* array = member(object, name).as<Value::Array>();
  return array ? *array : kNone;
}

}  // namespace shoal::server::testing
