#include "weights/quantised.h"

#include <cmath>
#include <gmock/gmock.h>

#include "base/temporary_folder_testing.h"
#include "weights/archives_testing.h"
#include "weights/safetensors_layout.h"
#include "weights/source.h"

namespace shoal::weights {
namespace {

using ::testing::HasSubstr;

std::optional<Quantisation> parse_config(const std::string& text) {
  return Quantisation::parse(Json::parse(text, "config.json"));
}

TEST(Quantisation, IsReadAsItWasWritten) {
  EXPECT_FALSE(parse_config(R"({"quantization_config": null})"));
  for (const DType precision : {DType::f32, DType::bf16}) {
    const std::string text = Quantisation{precision}.added_to("{\"dim\": 4,\n \"deep\": {\"x\": 1}\n }\n");
    EXPECT_EQ(parse_config(text)->precision, precision) << text;
    EXPECT_EQ(Json::parse(text, "").at("deep").at("x").as_integer(), 1);
    EXPECT_EQ(code_of([&] { Quantisation().added_to(text); }), ErrorCode::corrupt_file);
  }
  for (const char* bad : {"", "{}", "[1]", "{\"a\": 1"})
    EXPECT_EQ(code_of([&] { Quantisation().added_to(bad); }), ErrorCode::corrupt_file) << bad;
}

TEST(Quantisation, KeepsTheGroupsOf4Bits) {
  for (const int64_t group : {32, 64, 128}) {
    const std::string text = Quantisation{DType::bf16, DType::u4, group}.added_to("{\"dim\": 4}");
    EXPECT_EQ(parse_config(text)->weights, DType::u4);
    EXPECT_EQ(parse_config(text)->group, group);
    const auto with = [&](const std::string& from, const std::string& to) {
      return message_of([&] { parse_config(std::string(text).replace(text.find(from), from.size(), to)); });
    };
    const std::string member = concat("\"group\": ", group);
    for (const char* bad : {"0", "-32", "33", "256", "4294967328"})
      EXPECT_THAT(with(member, concat("\"group\": ", bad)), HasSubstr("expected 32, 64 or 128")) << bad;
    for (const char* bad : {"\"64\"", "64.5", "null"})
      EXPECT_THAT(with(member, concat("\"group\": ", bad)), HasSubstr("group")) << bad;
    EXPECT_THAT(with(member + ", ", ""), HasSubstr("group"));
    EXPECT_THAT(with("int4", "int8"), HasSubstr("4 members"));
  }
}

TEST(Quantisation, NamesFp8) {
  const std::string text = Quantisation{DType::f32, DType::f8}.added_to("{\"dim\": 4}");
  EXPECT_THAT(text, HasSubstr("\"weights\": \"fp8\""));
  EXPECT_EQ(parse_config(text)->weights, DType::f8);
  EXPECT_EQ(parse_config(text)->precision, DType::f32);
  EXPECT_THAT(message_of([&] {
                parse_config(std::string(text).replace(text.find("\"fp8\""), 5, "\"fp8\", \"group\": 64"));
              }),
              HasSubstr("4 members"));
}

// The second version, with the language model's weights in every format and as they were.
TEST(Quantisation, SaysThatTheCodecIsIn8Bits) {
  for (const auto& [layers, group] : std::vector<std::pair<std::optional<DType>, int64_t>>{
           {DType::i8, 0}, {DType::u4, 64}, {std::nullopt, 0}}) {
    const std::string text = Quantisation{DType::bf16, layers, group, true}.added_to("{\"dim\": 4}");
    const Quantisation read = parse_config(text).value();
    EXPECT_TRUE(read.codec);
    EXPECT_EQ(read.weights, layers) << text;
    EXPECT_EQ(read.group, group);
    const auto with = [&](const std::string& from, const std::string& to) {
      return message_of([&] { parse_config(std::string(text).replace(text.find(from), from.size(), to)); });
    };
    EXPECT_THAT(with("\"version\": 2", "\"version\": 1"), HasSubstr(layers ? "members" : "weights"));
    EXPECT_THAT(with("\"version\": 2", "\"version\": 3"), HasSubstr("expected 1 or 2, found 3"));
    for (const char* bad : {"\"int4\"", "true", "null"})
      EXPECT_THAT(with("\"codec\": \"int8\"", concat("\"codec\": ", bad)), HasSubstr("codec")) << bad;
    EXPECT_THAT(with(", \"codec\": \"int8\"", ""), HasSubstr("codec"));
    EXPECT_THAT(with("\"codec\"", "\"more\": 1, \"codec\""), HasSubstr("members"));
  }
  EXPECT_FALSE(parse_config(Quantisation().added_to("{\"a\": 1}"))->codec);
}

TEST(Quantisation, RefusesWhatItDoesNotKnow) {
  const std::string good = Quantisation().added_to("{\"a\": 1}");
  for (const auto& [from, to, named] :
       std::vector<std::array<std::string, 3>>{{"shoal", "gptq", "quant_method"},
                                               {"\"shoal\"", "7", "quant_method"},
                                               {": 1,", ": 3,", "version"},
                                               {": 1,", ": 2,", "codec"},
                                               {": 1,", ": \"1\",", "version"},
                                               {"\"version\": 1,", "", "version"},
                                               {"int8", "int2", "weights"},
                                               {"int8", "int4", "group"},
                                               {"bfloat16", "float16", "precision"},
                                               {"{\"quant", "{\"group\": 3, \"quant", "4 members"}}) {
    std::string text = good;
    text.replace(text.rfind(from), from.size(), to);
    EXPECT_THAT(message_of([&] { parse_config(text); }), HasSubstr(named)) << text;
  }
  EXPECT_TRUE(code_of([&] { parse_config(R"({"quantization_config": 3})"); }));
}

struct TestTensor {
  NamedShape what;
  std::string bytes;
};

class QuantisedCheckpoint : public ::testing::Test {
 protected:
  Checkpoint checkpoint() {
    std::vector<NamedShape> shapes;
    for (const TestTensor& tensor : tensors_) shapes.push_back(tensor.what);
    const SafetensorsLayout layout = SafetensorsLayout::of(shapes);
    std::string file = layout.header;
    file.resize(static_cast<size_t>(layout.file_bytes));
    for (size_t i = 0; i < tensors_.size(); ++i)
      file.replace(static_cast<size_t>(layout.offsets[i]), tensors_[i].bytes.size(), tensors_[i].bytes);
    return Checkpoint::open(folder_.write(concat(++files_, ".safetensors"), file));
  }
  // What a check of the file, or a reader of the matrix, says.
  void expect_refused(const std::string& sentence, bool also_by_reader = true) {
    const Checkpoint opened = checkpoint();
    EXPECT_THAT(message_of([&] { check_quantised(opened, format_, matrices_); }), HasSubstr(sentence));
    if (!also_by_reader) return;
    EXPECT_THAT(
        message_of([&] { read_weights(opened, team_)->layer_matrix("w.weight", matrices_[0].shape); }),
        HasSubstr(sentence));
  }

  const TemporaryFolder folder_;
  ThreadTeam team_{1};
  int files_ = 0;
  Quantisation format_;
  std::vector<RequiredTensor> matrices_ = {{.name = "w.weight", .shape = {2, 3}}};
  std::vector<TestTensor> tensors_ = {
      {{"w.weight", DType::i8, {2, 3}}, array_bytes<int8_t>({1, -127, 3, 127, 0, -6})},
      {{"norm", DType::f32, {1}}, array_bytes<float>({1})},
      {{"w.scales", DType::f32, {2}}, array_bytes<float>({0.5f, 0})}};
};

TEST_F(QuantisedCheckpoint, GivesIntegersAndScales) {
  const Checkpoint opened = checkpoint();
  check_quantised(opened, Quantisation(), matrices_);
  const auto source = read_weights(opened, team_);
  const Weight weight = source->layer_matrix("w.weight", {2, 3});
  EXPECT_EQ(weight.view.row<int8_t>(1)[2], -6);
  EXPECT_EQ(weight.scales.as<float>()[0], 0.5f);
  EXPECT_TRUE(code_of([&] { source->tensor("w.weight", {2, 3}); })) << "not of a layer";
  EXPECT_THAT(message_of([&] { check_quantised(opened, std::nullopt, matrices_); }), HasSubstr("needs a"));
}

TEST_F(QuantisedCheckpoint, RefusesScalesThatAreNone) {
  for (const float bad : {-1.0f, NAN, INFINITY, -INFINITY, 516.0f}) {  // 516 x 127 > 65,504
    tensors_[2].bytes = array_bytes<float>({0.5f, bad});
    expect_refused("w.scales: expected finite numbers");
  }
  tensors_[2] = {{"w.scales", DType::bf16, {2}}, array_bytes<uint16_t>({1, 1})};
  expect_refused("w.scales: expected dtype F32, found BF16");
  tensors_[2] = {{"w.scales", DType::f32, {3}}, array_bytes<float>({1, 1, 1})};
  expect_refused("w.scales: expected shape [2], found [3]");
  tensors_[2].what.name = "norm.scales";
  expect_refused("w.scales is missing");
}

TEST_F(QuantisedCheckpoint, RefusesWhatIsNotAsItSays) {
  tensors_[1].what.name = "norm.scales";
  expect_refused("norm.scales: belongs to no matrix", false);
  tensors_[1].what.name = "norm";
  tensors_[0].bytes[4] = static_cast<char>(-128);
  EXPECT_THAT(message_of([&] { find_integers(checkpoint(), "w.weight", {2, 3}, &team_); }),
              HasSubstr("-128"));
  EXPECT_THAT(message_of([&] { find_integers(checkpoint(), "w.weight", {3, 2}, &team_); }),
              HasSubstr("w.weight: expected I8 [3, 2], found I8 [2, 3]"));
  tensors_[0] = {{"w.weight", DType::f32, {2, 3}}, std::string(24, '\0')};
  expect_refused("w.weight: expected I8 [2, 3], found F32 [2, 3]", false);
}

TEST_F(QuantisedCheckpoint, OfFp8GivesItsBytesAndRefusesNaNs) {
  format_.weights = DType::f8;
  tensors_[0] = {{"w.weight", DType::f8, {2, 3}}, "\x7e\xfe\x01\x80\x38\xb8"};
  const Checkpoint opened = checkpoint();
  check_quantised(opened, format_, matrices_);
  const Weight weight = read_weights(opened, team_)->layer_matrix("w.weight", {2, 3});
  EXPECT_EQ(weight.view.dtype(), DType::f8);
  EXPECT_EQ(weight.view.row<uint8_t>(1)[2], 0xb8);
  EXPECT_EQ(weight.scales.as<float>()[0], 0.5f);
  EXPECT_THAT(message_of([&] { check_quantised(opened, std::nullopt, matrices_); }), HasSubstr("needs a"));
  EXPECT_THAT(message_of([&] { check_quantised(opened, Quantisation(), matrices_); }),
              HasSubstr("w.weight: expected I8 [2, 3], found F8_E4M3 [2, 3]"));
  for (const char bad : {'\x7f', '\xff'}) {
    tensors_[0].bytes[4] = bad;
    EXPECT_THAT(message_of([&] { read_weights(checkpoint(), team_)->layer_matrix("w.weight", {2, 3}); }),
                HasSubstr("w.weight: expected numbers, found NaN"));
  }
  tensors_[0] = {{"w.weight", DType::i8, {2, 3}}, std::string(6, '\x7f')};
  expect_refused("w.weight: expected F8_E4M3 [2, 3], found I8 [2, 3]", false);
}

TEST_F(QuantisedCheckpoint, OfFp8RefusesScalesThatAreNone) {
  format_.weights = DType::f8;
  tensors_[0] = {{"w.weight", DType::f8, {2, 3}}, std::string(6, '\0')};
  for (const float bad : {-1.0f, NAN, INFINITY, 147.0f}) {
    tensors_[2].bytes = array_bytes<float>({0.5f, bad});
    expect_refused("w.scales: expected finite numbers");
  }
  tensors_[2] = {{"w.scales", DType::f32, {3}}, array_bytes<float>({1, 1, 1})};
  expect_refused("w.scales: expected shape [2], found [3]");
}

// A matrix, a kernel, a transposed kernel, and what is no matrix.
class CodecCheckpoint : public QuantisedCheckpoint {
 protected:
  CodecCheckpoint() {
    matrices_ = {{.name = "w.weight", .shape = {2, 3}, .outputs_axis = 0},
                 {.name = "c.conv", .shape = {2, 3, 1}, .weight_normed = true, .outputs_axis = 0},
                 {.name = "t.conv", .shape = {2, 3, 1}, .weight_normed = true, .outputs_axis = 1},
                 {.name = "norm", .shape = {1}}};
    const std::string integers = array_bytes<int8_t>({1, -127, 3, 127, 0, -6});
    tensors_.push_back({{"c.conv.weight", DType::i8, {2, 3, 1}}, integers});
    tensors_.push_back({{"c.conv.scales", DType::f32, {2}}, array_bytes<float>({0.5f, 0})});
    tensors_.push_back({{"t.conv.weight", DType::i8, {2, 3, 1}}, integers});
    tensors_.push_back({{"t.conv.scales", DType::f32, {3}}, array_bytes<float>({0.5f, 0, 2})});
  }
  std::string refusal(bool in_8_bits = true) {
    return message_of([&] { check_quantised_codec(checkpoint(), in_8_bits, matrices_); });
  }
};

TEST_F(CodecCheckpoint, GivesIntegersAndScalesOfOutputs) {
  const Checkpoint opened = checkpoint();
  check_quantised_codec(opened, true, matrices_);
  const auto source = read_weights(opened, team_);
  EXPECT_EQ(source->layer_matrix("w.weight", {2, 3}).scales.elements(), 2);
  EXPECT_EQ(source->layer_convolution("c.conv", {2, 3, 1}, 0).scales.elements(), 2);
  const Weight transposed = source->layer_convolution("t.conv", {2, 3, 1}, 1);
  EXPECT_EQ(transposed.scales.as<float>()[2], 2.0f);
  EXPECT_EQ(transposed.view.as<int8_t>()[5], -6);
  EXPECT_THAT(refusal(false), HasSubstr("w.weight: found I8, which needs a quantization_config"));
}

TEST_F(CodecCheckpoint, RefusesWhatIsNotAsItSays) {
  const auto good = tensors_;
  const auto refused = [&](size_t at, const TestTensor& bad, const std::string& sentence) {
    tensors_ = good;
    tensors_[at] = bad;
    EXPECT_THAT(refusal(), HasSubstr(sentence));
  };
  for (const float bad : {-1.0f, NAN, INFINITY})
    refused(4, {{"c.conv.scales", DType::f32, {2}}, array_bytes<float>({bad, 1})},
            "c.conv.scales: expected finite numbers");
  refused(6, {{"t.conv.scales", DType::f32, {2}}, array_bytes<float>({1, 1})},
          "t.conv.scales: expected shape [3], found [2]");
  refused(6, {{"t.conv.scales", DType::bf16, {3}}, array_bytes<uint16_t>({1, 1, 1})}, "expected dtype F32");
  refused(6, {{"norm.scales", DType::f32, {3}}, array_bytes<float>({1, 1, 1})}, "t.conv.scales is missing");
  refused(3, {{"c.conv.weight", DType::f32, {2, 3, 1}}, std::string(24, '\0')},
          "c.conv.weight: expected I8 [2, 3, 1], found F32");
  refused(1, {{"norm", DType::i8, {1}}, "1"}, "norm: found I8");
  tensors_ = good;
  tensors_.push_back({{"norm.scales", DType::f32, {1}}, array_bytes<float>({1})});
  EXPECT_THAT(refusal(), HasSubstr("norm.scales: belongs to no matrix"));
  tensors_ = good;
  tensors_[5].bytes[0] = static_cast<char>(-128);
  EXPECT_THAT(
      message_of([&] { read_weights(checkpoint(), team_)->layer_convolution("t.conv", {2, 3, 1}, 1); }),
      HasSubstr("-128"));
}

class NibbleCheckpoint : public QuantisedCheckpoint {
 protected:
  NibbleCheckpoint() {
    format_ = {DType::bf16, DType::u4, 32};
    matrices_ = {{.name = "w.weight", .shape = {2, 34}}};  // two groups, of 32 and 2
    tensors_ = {{{"w.weight", DType::u8, {2, 17}}, std::string(34, '\x5a')},
                {{"norm", DType::f32, {1}}, array_bytes<float>({1})},
                {{"w.scales", DType::bf16, {2, 2}}, array_bytes<uint16_t>({0x3f80, 0, 0x3f80, 0x3f80})},
                {{"w.minima", DType::bf16, {2, 2}}, array_bytes<uint16_t>({0xbf80, 0, 0x3f80, 0x3f80})}};
  }
};

TEST_F(NibbleCheckpoint, GivesIntegersScalesAndMinima) {
  const Checkpoint opened = checkpoint();
  check_quantised(opened, format_, matrices_);
  const Weight weight = read_weights(opened, team_)->layer_matrix("w.weight", {2, 34});
  EXPECT_EQ(weight.view.row<uint8_t>(1)[16], 0x5a);
  EXPECT_EQ(weight.scales.row<uint16_t>(1)[1], 0x3f80);
  EXPECT_EQ(weight.minima.row<uint16_t>(0)[0], 0xbf80);
  EXPECT_THAT(message_of([&] { check_quantised(opened, std::nullopt, matrices_); }), HasSubstr("needs a"));
  EXPECT_THAT(message_of([&] { check_quantised(opened, Quantisation(), matrices_); }),
              HasSubstr("w.weight: expected I8 [2, 34], found U8 [2, 17]"));
}

TEST_F(NibbleCheckpoint, RefusesScalesAndMinimaThatAreNone) {
  for (const uint16_t bad : {0x7f80, 0xff80, 0x7fc0}) {
    tensors_[2].bytes = array_bytes<uint16_t>({0x3f80, 0, 0x3f80, bad});
    tensors_[3].bytes = array_bytes<uint16_t>({0x3f80, 0, 0x3f80, 0});
    expect_refused("w.scales: expected finite numbers of at least 0");
    std::swap(tensors_[2].bytes, tensors_[3].bytes);
    expect_refused("w.minima: expected finite numbers");
  }
  tensors_[2].bytes = array_bytes<uint16_t>({0xbf80, 0, 0, 0});
  expect_refused("w.scales: expected finite numbers of at least 0 and at most 4366.93, found -1");
}

TEST_F(NibbleCheckpoint, RefusesWhatIsNotAsItSays) {
  const auto good = tensors_;
  tensors_[2] = {{"w.scales", DType::f32, {2, 2}}, std::string(16, '\0')};
  expect_refused("w.scales: expected dtype BF16, found F32");
  tensors_ = good;
  tensors_[3] = {{"w.minima", DType::bf16, {2, 1}}, array_bytes<uint16_t>({0, 0})};
  expect_refused("w.minima: expected shape [2, 2], found [2, 1]");
  tensors_[2] = {{"w.scales", DType::bf16, {2, 1}}, array_bytes<uint16_t>({0, 0})};
  expect_refused("w.scales: expected shape [2, 2], found [2, 1]", false);  // groups of 64 or 128
  tensors_ = good;
  tensors_[1].what.name = "norm.minima";
  expect_refused("norm.minima: belongs to no matrix", false);
  tensors_ = good;
  tensors_.pop_back();
  expect_refused("w.minima is missing");
  tensors_ = good;
  tensors_[0] = {{"w.weight", DType::f32, {2, 34}}, std::string(272, '\0')};
  expect_refused("w.weight: expected U8 [2, 17], found F32 [2, 34]", false);
  matrices_[0].shape = {2, 35};
  EXPECT_THAT(message_of([&] { find_nibbles(checkpoint(), "w.weight", {2, 35}, 32); }),
              HasSubstr("expected U8"));
}

}  // namespace
}  // namespace shoal::weights
