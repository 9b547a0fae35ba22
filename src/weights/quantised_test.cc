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

TEST(Quantisation, RefusesWhatItDoesNotKnow) {
  const std::string good = Quantisation().added_to("{\"a\": 1}");
  for (const auto& [from, to, named] :
       std::vector<std::array<std::string, 3>>{{"shoal", "gptq", "quant_method"},
                                               {"\"shoal\"", "7", "quant_method"},
                                               {": 1,", ": 2,", "version"},
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
  for (const float bad : {-1.0f, NAN, INFINITY, -INFINITY}) {
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
  for (const float bad : {-1.0f, NAN, INFINITY}) {
    tensors_[2].bytes = array_bytes<float>({0.5f, bad});
    expect_refused("w.scales: expected finite numbers");
  }
  tensors_[2] = {{"w.scales", DType::f32, {3}}, array_bytes<float>({1, 1, 1})};
  expect_refused("w.scales: expected shape [2], found [3]");
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
  expect_refused("w.scales: expected finite numbers of at least 0, found -1");
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
