// For tests of readers: values in few words, random trees, and what an error must be like.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::server {

inline Value text_value(std::string text) { return {std::move(text)}; }
inline Value bytes_value(std::string data) { return {Bytes{std::move(data)}}; }
inline Value integer_value(int64_t value) { return {value}; }

// The BodyError of `read`, of the caller's kind, fit to be shown: one line of UTF-8 that is not long.
inline BodyError error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const BodyError& error) {
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unsupported);
    EXPECT_TRUE(is_utf8(error.message()));
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    EXPECT_LT(error.message().size(), 3000u);
    return error;
  }
  ADD_FAILURE() << "was read";
  return {ErrorCode::internal, "", "was read"};
}

// A tree of every kind of value with the numbers and texts that writers get wrong.
class RandomTree {
 public:
  RandomTree(uint64_t seed, bool with_bytes) : random_(seed), with_bytes_(with_bytes) {}

  Value make(int depth = 0) {
    const uint64_t kinds = depth < 5 ? 8 : 6;
    switch (random_() % kinds) {
      case 0:
        return {};
      case 1:
        return {random_() % 2 == 0};
      case 2:
        return {integer()};
      case 3:
        return {number()};
      case 4:
        return with_bytes_ ? bytes_value(bytes(length())) : Value{text()};
      case 5:
        return {text()};
      case 6:
        return array(depth);
      default:
        return object(depth);
    }
  }

 private:
  size_t length() {
    constexpr size_t kEdges[] = {0, 1, 15, 16, 31, 32, 255, 256};
    return random_() % 2 ? random_() % 8 : kEdges[random_() % std::size(kEdges)];
  }

  int64_t integer() {
    const int64_t power = int64_t{1} << random_() % 63;
    const auto near = static_cast<int64_t>(random_() % 3) - 1;
    switch (random_() % 4) {
      case 0:
        return power + near;
      case 1:
        return -power + near;
      case 2:
        return random_() % 2 ? INT64_MAX : INT64_MIN;
      default:
        return static_cast<int64_t>(random_());
    }
  }

  double number() {
    constexpr double kEdges[] = {0, -0.0, 1, 3, 0.1, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 0x1p63};
    if (random_() % 2) return kEdges[random_() % std::size(kEdges)];
    while (true) {
      const auto value = std::bit_cast<double>(static_cast<uint64_t>(random_()));
      if (std::isfinite(value)) return value;
    }
  }

  std::string bytes(size_t count) {
    std::string out;
    while (out.size() < count) out += static_cast<char>(random_());
    return out;
  }

  std::string text() {
    static const std::string kPieces[] = {"a",
                                          "\"",
                                          "\\",
                                          "/",
                                          "\n",
                                          "\x01",
                                          "\x7f",
                                          "\xc3\xa9",
                                          "\xe4\xb8\xad",
                                          "\xf0\x9f\x90\x9f",
                                          "\\u0041",
                                          "\xe2\x80\xa8",
                                          std::string(1, '\0'),
                                          "\xed\x9f\xbf"};
    std::string out;
    for (size_t left = length(); left > 0; --left) out += kPieces[random_() % std::size(kPieces)];
    return out;
  }

  Value array(int depth) {
    Value::Array array;
    for (size_t left = random_() % 20; left > 0; --left) array.push_back(make(depth + 1));
    return {std::move(array)};
  }

  Value object(int depth) {
    Value::Object object;
    for (size_t left = random_() % 20; left > 0; --left)
      object.emplace_back(text() + std::to_string(left), make(depth + 1));
    return {std::move(object)};
  }

  std::mt19937_64 random_;
  bool with_bytes_;
};

}  // namespace shoal::server
