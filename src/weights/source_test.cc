#include "weights/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_testing.h"
#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

using ::testing::ElementsAre;

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(DType::f32, shape);
  for (float& element : tensor.span<float>()) element = value;
  return tensor;
}

TEST(TensorSource, NamesOnlyWritesDownEachTensorOnce) {
  NamesOnly names([](std::string_view name) { return std::string(name.substr(0, 1)); });
  EXPECT_TRUE(names.names_only());
  EXPECT_FALSE(names.contains("a.weight"));
  const Weight weight = names.tensor("a.weight", {3, 4});
  EXPECT_TRUE(weight.view.is_sized_only());
  EXPECT_EQ(weight.view.shape(), (Shape{3, 4}));
  names.convolution("b.conv", {5, 6, 7});
  names.tensor("a.weight", {3, 4});
  const std::vector<RequiredTensor> tensors = names.take();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a.weight");
  EXPECT_EQ(tensors[0].part, "a");
  EXPECT_FALSE(tensors[0].weight_normed);
  EXPECT_EQ(tensors[1].name, "b.conv");
  EXPECT_EQ(tensors[1].shape, (Shape{5, 6, 7}));
  EXPECT_TRUE(tensors[1].weight_normed);
}

TEST(TensorSource, AWeightWithoutMemoryStaysSo) {
  NamesOnly names;
  const Tensor sized = to_f32(names.tensor("a", {1000, 1000, 1000, 1000}), nullptr);  // 4 TB
  EXPECT_TRUE(sized.view().is_sized_only());
  EXPECT_EQ(sized.bytes(), int64_t{4} * 1000 * 1000 * 1000 * 1000);
}

TEST(TensorSource, DrawnWeightsAreDrawnByNameAndTakenOver) {
  std::vector<std::string> drawn;
  const auto source = draw_weights(
      [&](const std::string& name, const Shape& shape) {
        drawn.push_back(name);
        return filled(shape, 2);
      },
      ".norm.");
  Weight weight = source->tensor("a.bias", {4});
  const void* const memory = weight.view.data();
  const Tensor values = to_f32(std::move(weight), nullptr);
  EXPECT_EQ(values.view().data(), memory) << "not copied";
  EXPECT_THAT(values.span<float>(), ElementsAre(2, 2, 2, 2));
  source->convolution("b", {1, 2, 3});
  EXPECT_THAT(drawn, ElementsAre("a.bias", "b.weight"));
  EXPECT_TRUE(source->contains("c.weight"));
  EXPECT_FALSE(source->contains("c.norm.weight"));
  EXPECT_FALSE(source->names_only());
}

TEST(TensorSource, ACheckpointsTensorsAreViewsAndItsConvolutionsFolded) {
  const TemporaryFolder folder;
  const std::string header = R"({"a.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
    "c.weight_g": {"dtype": "F32", "shape": [1, 1, 1], "data_offsets": [8, 12]},
    "c.weight_v": {"dtype": "F32", "shape": [1, 1, 2], "data_offsets": [12, 20]}})";
  const std::string file = safetensors_file(header, array_bytes(std::vector<float>{3, 4, 10, 3, 4}));
  const Checkpoint checkpoint = Checkpoint::open(folder.write("m.safetensors", file));
  ThreadTeam team(1);
  const auto source = read_weights(checkpoint, team);
  EXPECT_TRUE(source->contains("a.weight"));
  EXPECT_FALSE(source->contains("b.weight"));
  Weight weight = source->tensor("a.weight", {2, 1});
  EXPECT_EQ(weight.view.data(), checkpoint.find("a.weight")->data());
  EXPECT_THAT(to_f32(std::move(weight), &team).span<float>(), ElementsAre(3, 4)) << "a copy";
  const Weight folded = source->convolution("c", {1, 1, 2});
  EXPECT_FLOAT_EQ(folded.view.as<float>()[0], 6);
  EXPECT_FLOAT_EQ(folded.view.as<float>()[1], 8);
  EXPECT_EQ(code_of([&] { source->tensor("a.weight", {1, 2}); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([&] { source->tensor("b.weight", {1, 2}); }), ErrorCode::not_found);
}

}  // namespace
}  // namespace shoal::weights
