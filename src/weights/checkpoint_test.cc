#include "weights/checkpoint.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_testing.h"
#include "weights/archives_testing.h"
#include "weights/convert.h"

namespace shoal::weights {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kFish = SHOAL_SOURCE_DIR "/tests/data/fish/";

// Sum of |x| over all floating tensors, in double.
double absolute_sum(const Checkpoint& checkpoint) {
  double sum = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.view.dtype() == DType::boolean) continue;
    const Tensor values = to_f32(tensor.view);
    for (float value : values.span<float>()) sum += std::abs(double{value});
  }
  return sum;
}

float first(TensorView view) { return to_f32(view).as<float>()[0]; }
float last(TensorView view) { return to_f32(view).as<float>()[view.elements() - 1]; }

// One safetensors tensor.
std::string safetensors_of(const std::string& name, const std::string& dtype, int64_t count,
                           const std::string& data, const std::string& padding = "") {
  return safetensors_file(concat("{\"", name, R"(":{"dtype":")", dtype, R"(","shape":[)", count,
                                 R"(],"data_offsets":[0,)", data.size(), "]}}", padding),
                          data);
}
std::string floats_file(const std::string& name, const std::vector<float>& values) {
  return safetensors_of(name, "F32", static_cast<int64_t>(values.size()), array_bytes(values));
}

// The expected numbers of the three fixture tests were read with Python 3.11's zipfile and pickle (stub
// classes in place of torch) and numpy: values by index, sums as float64 of absolute values printed to ten
// digits.
TEST(Checkpoint, ReadsTheTorchModelAsPythonDoes) {
  const Checkpoint model = Checkpoint::open(kFish + "set_a/model.pth");
  EXPECT_EQ(model.tensors().size(), 49u);
  EXPECT_EQ(model.tensors().front().name, "embeddings.weight");
  EXPECT_EQ(model.tensors().back().name, "audio_projector.weight");
  EXPECT_EQ(model.file_bytes(), 776108);
  const TensorView embeddings = model.get("embeddings.weight", {576, 64});
  EXPECT_EQ(embeddings.dtype(), DType::bf16);
  EXPECT_EQ(first(embeddings), -0.185546875f);
  EXPECT_EQ(last(embeddings), 0.174804688f);
  EXPECT_EQ(first(model.get("layers.0.attention.wqkv.weight", {256, 64})), -0.25f);
  EXPECT_EQ(last(model.get("fast_output.weight", {32, 64})), 0.184570312f);
  EXPECT_NEAR(absolute_sum(model), 64372.99154, 1e-5);
}

TEST(Checkpoint, ReadsTheTorchCodecAsPythonDoes) {
  const Checkpoint codec = Checkpoint::open(kFish + "set_a/codec.pth");
  EXPECT_EQ(codec.tensors().size(), 415u);
  EXPECT_EQ(codec.find("quantizer.pre_module.causal_mask")->dtype(), DType::boolean);
  EXPECT_EQ(codec.find("encoder.block.4.block.5.freqs_cis")->shape(), (Shape{16, 32, 2}));
  EXPECT_NEAR(absolute_sum(codec), 215854.5012, 1e-4);
}

TEST(Checkpoint, ReadsTheShardedModelAsPythonDoes) {
  const Checkpoint model = Checkpoint::open(kFish + "set_s2/model.safetensors.index.json");
  EXPECT_EQ(model.tensors().size(), 47u);
  EXPECT_EQ(model.tensors()[0].name, "text_model.model.embeddings.weight");
  EXPECT_EQ(model.tensors()[1].name, "audio_decoder.codebook_embeddings.weight");
  EXPECT_EQ(model.tensors().back().name, "audio_decoder.output.weight");
  EXPECT_EQ(model.file_bytes(), 556544 + 441728);
  EXPECT_EQ(last(model.get("audio_decoder.codebook_embeddings.weight", {480, 80})), 0.796875f);  // shard 1
  EXPECT_EQ(first(model.get("audio_decoder.layers.0.attention.wqkv.weight", {256, 80})),
            -0.0412597656f);  // shard 2
  EXPECT_NEAR(absolute_sum(model), 70409.62233, 1e-5);
}

TEST(Checkpoint, OpensTheGoldens) {
  const Checkpoint goldens = Checkpoint::open(kFish + "set_a/lm_goldens.safetensors");
  EXPECT_EQ(goldens.tensors().size(), 76u);
  EXPECT_FLOAT_EQ(goldens.get("lm.noref.slow_logits_all", {8, 576}).as<float>()[2], 0.5382688f);
  const TensorView* prompt = goldens.find("lm.noref.prompt");
  ASSERT_NE(prompt, nullptr);
  EXPECT_EQ(prompt->as<int32_t>()[0], 523);
  EXPECT_EQ(code_of([&] { goldens.get("lm.noref.prompt", {11, 24}); }), ErrorCode::corrupt_file)
      << "I32 is no weight";
}

TEST(Checkpoint, GetErrorsSayWhatWasExpectedAndFound) {
  const Checkpoint model = Checkpoint::open(kFish + "set_a/model.pth");
  EXPECT_EQ(code_of([&] { model.get("nothing", {1}); }), ErrorCode::not_found);
  EXPECT_THAT(
      message_of([&] { model.get("norm.weight", {3, 5}); }),
      AllOf(HasSubstr("model.pth"), HasSubstr("norm.weight"), HasSubstr("[3, 5]"), HasSubstr("[64]")));
  EXPECT_THAT(message_of([&] { model.get("nothing", {7}); }), AllOf(HasSubstr("nothing"), HasSubstr("[7]")));
}

TEST(Checkpoint, RenamesDropsAndRefusesCollisions) {
  TemporaryFolder folder;
  const std::string header = R"({"a.x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b.x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                             R"("c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})";
  Checkpoint checkpoint = Checkpoint::open(folder.write("m.safetensors", safetensors_file(header, "123")));
  const void* a = checkpoint.find("a.x")->data();
  const auto last_part = [](std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); };
  EXPECT_THAT(message_of([&] { checkpoint.rename(last_part); }), AllOf(HasSubstr("a.x"), HasSubstr("b.x")));
  EXPECT_TRUE(checkpoint.contains("a.x")) << "unchanged after the error";

  checkpoint.rename(
      [](std::string_view name) { return name == "b.x" ? std::string() : concat("new.", name); });
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_FALSE(checkpoint.contains("a.x"));
  const Checkpoint moved = std::move(checkpoint);
  ASSERT_TRUE(moved.contains("new.a.x"));
  EXPECT_EQ(moved.find("new.a.x")->data(), a);
  moved.release_pages();
  EXPECT_EQ(*moved.find("new.c")->as<uint8_t>(), '3');
}

TEST(Checkpoint, CopiesWhatCannotBeViewedInPlace) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  for (size_t padding = 0; padding < 4; ++padding) {  // three of the four put the data at an odd address
    const std::string file = safetensors_of("w", "F32", 3, array_bytes(values), std::string(padding, ' '));
    const Checkpoint checkpoint = Checkpoint::open(folder.write(concat(padding, ".safetensors"), file));
    const TensorView view = checkpoint.get("w", {3});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data()) % alignof(float), 0u);
    EXPECT_EQ(std::vector<float>(view.as<float>(), view.as<float>() + 3), values);
  }
}

std::string torch_file_of(int tensors, const TorchTensor& tensor) {
  std::vector<std::pair<std::string, std::string>> items;
  for (int i = 0; i < tensors; ++i) items.emplace_back(concat("w", i), pickle_tensor(tensor));
  return zip_file({{"m/data.pkl", pickle_file(pickle_dict(items))}, {"m/data/0", std::string(40000, '\0')}});
}

TEST(Checkpoint, StridedCopiesAreBoundedByTheFile) {
  TemporaryFolder folder;
  const TorchTensor transposed{.storage_elements = 10000, .shape = {100, 100}, .strides = {1, 100}};
  const Checkpoint one = Checkpoint::open(folder.write("one.pth", torch_file_of(1, transposed)));
  EXPECT_TRUE(one.get("w0", {100, 100}).is_contiguous());
  const std::string many = folder.write("many.pth", torch_file_of(50, transposed));
  EXPECT_EQ(code_of([&] { Checkpoint::open(many); }), ErrorCode::too_large);
  const TorchTensor dense{.storage_elements = 10000, .shape = {100, 100}, .strides = {100, 1}};
  EXPECT_EQ(Checkpoint::open(folder.write("shared.pth", torch_file_of(50, dense))).tensors().size(), 50u);
}

TEST(Checkpoint, DuplicateNamesAndEmptyFilesAreRefused) {
  TemporaryFolder folder;
  const std::string tensor = pickle_tensor({.storage_elements = 1, .shape = {1}, .strides = {1}});
  const std::string twice =
      zip_file({{"m/data.pkl", pickle_file(pickle_dict({{"w", tensor}, {"w", tensor}}))},
                {"m/data/0", array_bytes<float>({1})}});
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.write("twice.pt", twice)); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.write("e.safetensors", "")); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.write("e.pth", "")); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.write("n.safetensors", safetensors_file("{}", ""))); }),
            ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.path() + "/absent.pth"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { Checkpoint::open(folder.path()); }), ErrorCode::invalid_argument) << "a folder";
}

TEST(Checkpoint, AGitLfsPointerIsCalledByItsName) {
  TemporaryFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:74fc\nsize 1871099728\n";
  for (const char* name : {"model.pth", "model.safetensors"}) {
    EXPECT_THAT(message_of([&] { Checkpoint::open(folder.write(name, pointer)); }),
                HasSubstr("git lfs pull"));
  }
}

// A folder with shards one.safetensors {a, extra} and two.safetensors {b}.
class Sharded : public testing::Test {
 protected:
  Sharded() {
    folder_.write("one.safetensors",
                  safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                   R"("extra":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                   "12"));
    folder_.write("two.safetensors", floats_file("b", {4, 5}));
  }
  Checkpoint open(const std::string& index) {
    return Checkpoint::open(folder_.write("m.safetensors.index.json", index));
  }
  std::optional<ErrorCode> code_for(const std::string& weight_map) {
    return code_of([&] { open(concat(R"({"weight_map":)", weight_map, "}")); });
  }

  TemporaryFolder folder_;
};

TEST_F(Sharded, ReadsTheListedTensorsInIndexOrder) {
  const Checkpoint checkpoint = open(R"({"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "b");
  EXPECT_EQ(checkpoint.get("b", {2}).as<float>()[1], 5.0f);
  EXPECT_FALSE(checkpoint.contains("extra"));
}

TEST_F(Sharded, RefusesAnIndexThatContradictsTheShards) {
  folder_.write("again.safetensors", floats_file("a", {4, 5}));
  EXPECT_EQ(code_for(R"({"a":"one.safetensors","b":"two.safetensors"})"), std::nullopt);
  EXPECT_EQ(code_for(R"({"a":"two.safetensors"})"), ErrorCode::corrupt_file) << "not in that shard";
  EXPECT_EQ(code_for(R"({"c":"one.safetensors"})"), ErrorCode::corrupt_file) << "in no shard";
  EXPECT_EQ(code_for(R"({"extra":"two.safetensors","b":"two.safetensors","a":"one.safetensors"})"),
            ErrorCode::corrupt_file)
      << "in another shard";
  EXPECT_EQ(code_for(R"({"a":"three.safetensors"})"), ErrorCode::not_found);
  EXPECT_EQ(code_for(R"({"a":"one.safetensors","a":"two.safetensors"})"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_for(R"({"extra":"one.safetensors","a":"again.safetensors"})"), ErrorCode::corrupt_file)
      << "a stands in both";
  for (const char* map : {"{}", "[]", "3", "null", R"({"a":1})", R"({"":"one.safetensors"})"}) {
    EXPECT_EQ(code_for(map), ErrorCode::corrupt_file) << map;
  }
  EXPECT_EQ(code_of([&] { open("{}"); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { open("[]"); }), ErrorCode::corrupt_file);
}

TEST_F(Sharded, AnIndexTooLargeIsRefusedUnread) {
  open(R"({"weight_map":{"a":"one.safetensors"}})");
  std::filesystem::resize_file(folder_.path("m.safetensors.index.json"), uintmax_t{60} << 20);
  EXPECT_THAT(message_of([&] { Checkpoint::open(folder_.path("m.safetensors.index.json")); }),
              HasSubstr("m.safetensors.index.json: 62914560 bytes, at most 4194304 are accepted"));
}

TEST_F(Sharded, ShardsArePlainNamesInTheSameFolder) {
  for (const char* shard : {"../one.safetensors", "/etc/one.safetensors", "./one.safetensors",
                            "x/../one.safetensors", "..", "", ".safetensors", "x\\\\one.safetensors",
                            "one.safetensors\\u0000", "one\\u0000.safetensors", "model.pth"}) {
    EXPECT_EQ(code_for(concat(R"({"a":")", shard, "\"}")), ErrorCode::corrupt_file) << shard;
  }
}

}  // namespace
}  // namespace shoal::weights
