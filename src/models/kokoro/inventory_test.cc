#include "models/kokoro/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/temporary_folder_testing.h"
#include "models/kokoro/checkpoint_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "models/kokoro/small_config_testing.h"

namespace shoal::kokoro {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Count {
  int64_t tensors = 0, parameters = 0;
  friend bool operator==(const Count&, const Count&) = default;
};

// As stored: a weight norm is a tensor more.
std::map<std::string, Count> counts_by_part(const Config& config) {
  std::vector<RequiredTensor> tensors = required_tensors(config);
  for (RequiredTensor& unused : unused_tensors(config)) tensors.push_back(std::move(unused));
  std::map<std::string, Count> counts;
  for (const RequiredTensor& tensor : tensors) {
    Count& count = counts[tensor.part];
    count.tensors += tensor.weight_normed ? 2 : 1;
    count.parameters += tensor.shape.elements() + (tensor.weight_normed ? tensor.shape[0] : 0);
  }
  return counts;
}

TEST(KokoroInventory, HasTheTensorsAndParametersOfThePublishedFile) {
  const std::map<std::string, Count> expected = {
      {"bert", {25, 6'292'480}},
      {"bert_encoder", {2, 393'728}},
      {"predictor", {122, 16'194'612}},
      {"decoder", {375, 53'276'190}},
      {"text_encoder", {24, 5'606'400}}};  // of the published checkpoint
  const std::map<std::string, Count> counts = counts_by_part(Config::published());
  Count all;
  for (const auto& [part, count] : expected) {
    ASSERT_TRUE(counts.contains(part)) << part;
    EXPECT_EQ(counts.at(part).tensors, count.tensors) << part;
    EXPECT_EQ(counts.at(part).parameters, count.parameters) << part;
  }
  for (const auto& [part, count] : counts) {
    all.tensors += count.tensors;
    all.parameters += count.parameters;
  }
  EXPECT_EQ(all.tensors, 548);
  EXPECT_EQ(all.parameters, 81'763'410);
}

TEST(KokoroInventory, ShapesOfTheSpec) {
  const std::pair<const char*, Shape> expected[] = {
      {"bert.embeddings.position_embeddings.weight", {512, 128}},
      {"predictor.text_encoder.lstms.4.weight_ih_l0_reverse", {1024, 640}},
      {"predictor.text_encoder.lstms.5.fc.weight", {1024, 128}},
      {"predictor.F0.1.pool", {512, 1, 3}},
      {"predictor.F0.1.conv1x1", {256, 512, 1}},
      {"predictor.N_proj.weight", {1, 256, 1}},
      {"decoder.encode.conv1", {1024, 514, 3}},
      {"decoder.decode.3.conv1", {512, 1090, 3}},
      {"decoder.decode.3.pool", {1090, 1, 3}},
      {"decoder.generator.ups.0", {512, 256, 20}},
      {"decoder.generator.ups.1", {256, 128, 12}},
      {"decoder.generator.noise_convs.0.weight", {256, 22, 12}},
      {"decoder.generator.noise_convs.1.weight", {128, 22, 1}},
      {"decoder.generator.noise_res.0.convs1.2", {256, 256, 7}},
      {"decoder.generator.noise_res.1.convs2.2", {128, 128, 11}},
      {"decoder.generator.resblocks.5.convs1.0", {128, 128, 11}},
      {"decoder.generator.resblocks.2.alpha2.1", {1, 256, 1}},
      {"decoder.generator.conv_post", {22, 128, 7}}};
  const std::vector<RequiredTensor> tensors = required_tensors(Config::published());
  for (const auto& [name, shape] : expected) {
    const auto found = std::ranges::find(tensors, name, &RequiredTensor::name);
    ASSERT_NE(found, tensors.end()) << name;
    EXPECT_EQ(found->shape, shape) << name;
  }
}

TEST(KokoroInventory, EveryFormOfWeightNormIsAccepted) {
  for (const NormForm form : {NormForm::weight_g, NormForm::parametrized, NormForm::plain})
    check_tensors(open_checkpoint(stored_arrays(small_config(), form)), small_config());
}

std::string problem_of(const std::vector<StoredArray>& arrays) {
  const weights::Checkpoint checkpoint = open_checkpoint(arrays);
  return weights::message_of([&] { check_tensors(checkpoint, small_config()); });
}

TEST(KokoroInventory, EveryMissingTensorIsNamed) {
  const std::vector<StoredArray> arrays = stored_arrays(small_config());
  const TemporaryFolder folder;
  const std::string path = folder.write("m.pth", checkpoint_file(arrays));
  for (const StoredArray& left_out : arrays) {
    weights::Checkpoint checkpoint = weights::Checkpoint::open(path);
    weights::normalise_kokoro_names(checkpoint);
    checkpoint.rename(
        [&](std::string_view name) { return name == left_out.name ? std::string() : std::string(name); });
    const std::string message = weights::message_of([&] { check_tensors(checkpoint, small_config()); });
    if (left_out.name.starts_with("bert.pooler")) {
      EXPECT_EQ(message, "") << "nothing reads it";
    } else {
      const std::string stem = left_out.name.substr(0, left_out.name.find(".weight_"));
      EXPECT_THAT(message, AllOf(HasSubstr("m.pth"), HasSubstr(stem), HasSubstr("missing")));
    }
  }
}

TEST(KokoroInventory, UnknownTensorsAndOtherShapesAreNamed) {
  std::vector<StoredArray> arrays = stored_arrays(small_config());
  arrays.push_back({"decoder.encode.conv3.weight", {1}, {0}});
  EXPECT_THAT(problem_of(arrays), HasSubstr("tensor decoder.encode.conv3.weight is not known"));
  arrays.back() = {"decoder.encode.conv1.weight", {18, 12, 3}, std::vector<float>(18 * 12 * 3)};
  EXPECT_THAT(problem_of(arrays), AllOf(HasSubstr("conv1.weight_g is not known"), HasSubstr("weight_v")))
      << "two forms of one weight";
  arrays.back() = {"surplus.weight", {1}, {0}};
  EXPECT_THAT(problem_of(arrays), HasSubstr("surplus.weight is not known"));
  arrays.pop_back();
  for (size_t i = 0; i < arrays.size(); i += 7) {
    StoredArray& array = arrays[i];
    const Shape shape = array.shape;
    array.shape = {1, shape.elements()};
    if (shape.rank() == 2 && shape[0] == 1) array.shape = {shape[1], 1};
    EXPECT_EQ(problem_of(arrays).find(array.name) == std::string::npos, array.name.starts_with("bert.pooler"))
        << array.name;
    array.shape = shape;
  }
}

TEST(KokoroInventory, MoreThanFiveProblemsAreCounted) {
  const std::string message =
      weights::message_of([] { check_tensors(open_checkpoint({{"bert.x", {1}, {0}}}), small_config()); });
  EXPECT_THAT(message, HasSubstr(concat("and ", required_tensors(small_config()).size() + 1 - 5, " more")));
}

TEST(KokoroInventory, NormsMayHaveWeightsOfTheirOwn) {
  std::vector<StoredArray> arrays = stored_arrays(small_config());
  arrays.push_back({"decoder.encode.norm1.norm.weight", {12}, std::vector<float>(12, 1)});
  arrays.push_back({"decoder.encode.norm1.norm.bias", {12}, std::vector<float>(12, 0)});
  arrays.push_back({"decoder.generator.resblocks.1.adain2.0.norm.weight", {8}, std::vector<float>(8, 1)});
  arrays.push_back({"decoder.generator.resblocks.1.adain2.0.norm.bias", {8}, std::vector<float>(8, 0)});
  EXPECT_EQ(problem_of(arrays), "");
  arrays.push_back({"decoder.encode.conv1.norm.weight", {12}, std::vector<float>(12, 1)});
  EXPECT_THAT(problem_of(arrays), HasSubstr("conv1.norm.weight is not known")) << "no style, no norm";
}

TEST(KokoroInventory, TheFixturesFitExactly) {
  weights::Checkpoint checkpoint = weights::Checkpoint::open(kFixture + "/kokoro-v1_0.pth");
  weights::normalise_kokoro_names(checkpoint);
  EXPECT_EQ(checkpoint.tensors().size(), 548u);
  Config config = Config::read(kFixture + "/config.json");
  config.take_widths(checkpoint);
  check_tensors(checkpoint, config);
}

}  // namespace
}  // namespace shoal::kokoro
