#include "server/body/infer_body.h"

#include <gtest/gtest.h>
#include <random>

#include "base/error.h"

namespace shoal::server {
namespace {

std::string element(std::string_view bytes) {
  std::string out;
  append_bytes_element(out, bytes);
  return out;
}

InferBody read_both(const std::string& json, const std::string& bytes) {
  return read_infer_body(json + bytes, std::to_string(json.size()));
}

std::string infer_message(const std::string& json, const std::string& bytes = "") {
  try {
    read_both(json, bytes);
  } catch (const BodyError& error) {
    return error.message();
  }
  return "accepted";
}

TEST(InferBody, TextsOfJson) {
  const InferBody body = read_infer_body(
      R"({"id":"7","parameters":{"seed":3},"inputs":[{"name":"text_input","shape":[1,2],"datatype":"BYTES",
          "data":[["a","b"]]}],"outputs":[{"name":"audio","parameters":{"binary_data":true}},{"name":"x"}]})",
      {});
  EXPECT_EQ(body.id, "7");
  EXPECT_EQ(*body.parameters.find("seed"), Value{int64_t{3}});
  ASSERT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(body.inputs[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(body.inputs[0].elements, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(body.inputs[0].binary);
  ASSERT_EQ(body.outputs.size(), 2u);
  EXPECT_EQ(body.outputs[0].binary, true);
  EXPECT_EQ(body.outputs[1].binary, std::nullopt);
}

// Encoded here by the definition of the format, decoded by the code.
TEST(InferBody, BytesComeBackAsTheyWere) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::string json = R"({"inputs":[)", bytes;
    std::vector<std::vector<std::string>> wanted(random() % 4);
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::string tensor;
      for (uint64_t n = random() % 5; n > 0; --n) {
        std::string content(random() % 300, '\0');
        for (char& c : content) c = static_cast<char>(random());
        for (int shift = 0; shift < 32; shift += 8) tensor += static_cast<char>(content.size() >> shift);
        tensor += content;
        wanted[i].push_back(content);
      }
      json += concat(i ? "," : "", R"({"name":"t","datatype":"BYTES","shape":[)", wanted[i].size(),
                     R"(],"parameters":{"binary_data_size":)", tensor.size(), "}}");
      bytes += tensor;
    }
    const InferBody body = read_both(json + "]}", bytes);
    ASSERT_EQ(body.inputs.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(body.inputs[i].elements, wanted[i]);
    if (bytes.empty()) continue;
    EXPECT_THROW(read_both(json + "]}", bytes.substr(1)), BodyError);
    EXPECT_THROW(read_both(json + "]}", bytes + "x"), BodyError);
  }
}

std::string one(const std::string& shape, const std::string& rest) {
  return R"({"inputs":[{"name":"t","datatype":"BYTES","shape":)" + shape + rest + "}]}";
}
std::string sized(size_t bytes) { return concat(R"(,"parameters":{"binary_data_size":)", bytes, "}"); }

TEST(InferBody, WhatDoesNotFitIsRefusedByItsField) {
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  EXPECT_EQ(infer_message(one("[1]", sized(5)), element("a")), "accepted");
  has(infer_message("{}"), "inputs");
  has(infer_message("[]"), "an object");
  has(infer_message(one("[1]", "")), "data");
  has(infer_message(one("[2]", R"(,"data":["a"])")), "expected 2 elements");
  has(infer_message(one("[-1]", R"(,"data":["a"])")), "shape[0]");
  has(infer_message(one("[65536,65536]", R"(,"data":["a"])")), "shape");
  has(infer_message(one("[1]", R"(,"data":[1])")), "inputs[0].data[0]");
  has(infer_message(one("[1]", sized(5) + R"(,"data":["a"])"), element("a")), "no data");
  has(infer_message(one("[1]", sized(6)), element("a")), "expected 6 bytes");
  has(infer_message(one("[1]", sized(4)), element("a")), "length");
  has(infer_message(one("[1]", sized(3)), "abc"), "length");
  has(infer_message(one("[0]", sized(5)), element("a")), "more");
  has(infer_message(one("[1]", R"(,"data":["a"])"), "x"), "belong to no input");
  has(infer_message(one("[1]", R"(,"data":["a"],"contents":1)")), "contents");
  has(infer_message(one("[1]", R"(,"parameters":{"shared_memory_region":"r"})")), "shared memory");
  has(infer_message(R"({"inputs":[{"name":"t","datatype":"FP32","shape":[1],"data":[1]}]})"), "BYTES");
  has(infer_message(R"({"inputs":[],"outputs":[{"name":"a","parameters":{"classification":3}}]})"),
      "classes");
}

TEST(InferBody, AHeaderLengthThatIsNoneIsRefused) {
  const std::string body = one("[1]", R"(,"data":["a"])");
  EXPECT_NO_THROW(read_infer_body(body, std::to_string(body.size())));
  for (const std::string text : {"", "-1", "1x", " 5", "0x10", "99999999999999999999", "1", "0"})
    EXPECT_THROW(read_infer_body(body, text), BodyError) << text;
  EXPECT_THROW(read_infer_body(body, std::to_string(body.size() + 1)), BodyError);
}

}  // namespace
}  // namespace shoal::server
