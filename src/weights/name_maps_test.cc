#include "weights/name_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_testing.h"
#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

const std::string kFishData = SHOAL_SOURCE_DIR "/tests/data/fish/";

using Names = std::vector<std::string>;

// A checkpoint of one-byte tensors.
Checkpoint checkpoint_of(const Names& names) {
  const TemporaryFolder folder;
  std::string header;
  for (size_t i = 0; i < names.size(); ++i)
    header += concat(i ? "," : "{", '"', names[i], R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",",
                     i + 1, "]}");
  return Checkpoint::open(
      folder.write("m.safetensors", safetensors_file(header + "}", std::string(names.size(), 'x'))));
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (const StoredTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}
Names dual_ar(const Names& names) {
  Checkpoint checkpoint = checkpoint_of(names);
  normalise_dual_ar_names(checkpoint);
  return names_of(checkpoint);
}
Names codec(const Names& names) {
  Checkpoint checkpoint = checkpoint_of(names);
  normalise_codec_names(checkpoint);
  return names_of(checkpoint);
}

TEST(DualArNames, PlainNamesStayAndAudioIsDropped) {
  EXPECT_EQ(dual_ar({"norm.weight", "audio_projector.weight", "x.audio_y", "the_model.norm"}),
            (Names{"norm.weight", "the_model.norm"}));
}

TEST(DualArNames, ModelPrefixesAreStrippedWhenTheFirstNameHasOne) {
  EXPECT_EQ(dual_ar({"model.a", "model.model.b", "c.model.d", "e"}), (Names{"a", "b", "c.d", "e"}));
  EXPECT_EQ(dual_ar({"e", "model.a"}), (Names{"e", "model.a"}));
}

TEST(DualArNames, S2NamesAreMappedBeforeAudioIsDropped) {
  EXPECT_EQ(
      dual_ar({"text_model.model.layers.0.w", "audio_decoder.codebook_embeddings.weight",
               "audio_decoder.layers.0.w", "audio_decoder.embeddings.weight", "audio_decoder.norm.weight",
               "audio_decoder.output.weight", "audio_decoder.project_in.bias", "audio_tower.x"}),
      (Names{"layers.0.w", "codebook_embeddings.weight", "fast_layers.0.w", "fast_embeddings.weight",
             "fast_norm.weight", "fast_output.weight", "fast_project_in.bias"}));
}

TEST(DualArNames, BothFixturesGetTheSameNames) {
  Checkpoint s1 = Checkpoint::open(kFishData + "set_a/model.pth");
  Checkpoint s2 = Checkpoint::open(kFishData + "set_s2/model.safetensors.index.json");
  normalise_dual_ar_names(s1);
  normalise_dual_ar_names(s2);
  EXPECT_EQ(s1.tensors().size(), 48u);
  EXPECT_EQ(s2.tensors().size(), 47u);
  for (const char* name : {"embeddings.weight", "codebook_embeddings.weight", "norm.weight",
                           "fast_embeddings.weight", "fast_norm.weight", "fast_output.weight",
                           "layers.0.attention.wqkv.weight", "fast_layers.0.feed_forward.w2.weight"}) {
    EXPECT_TRUE(s1.contains(name)) << name;
    EXPECT_TRUE(s2.contains(name)) << name;
  }
  EXPECT_FALSE(has_split_qkv(s1, "layers.0.attention"));
  EXPECT_TRUE(has_split_qkv(checkpoint_of({"layers.0.attention.wq.weight"}), "layers.0.attention"));
}

TEST(CodecNames, BuffersAreDroppedAndTheGeneratorIsKept) {
  EXPECT_EQ(codec({"a.weight", "a.freqs_cis", "b.causal_mask", "freqs_cis.w"}),
            (Names{"a.weight", "freqs_cis.w"}));
  EXPECT_EQ(codec({"optimizer", "generator.a.weight", "net.generator.b", "generator.c.freqs_cis"}),
            (Names{"a.weight", "net.b"}));
  EXPECT_EQ(codec({"generators", "a"}), Names{})
      << "the rule looks for the word, then keeps those with a dot";
}

TEST(KokoroNames, TheModulePrefixAfterThePartIsRemoved) {
  Checkpoint checkpoint = checkpoint_of({"bert.module.embeddings.w", "bert_encoder.module.weight",
                                         "decoder.encode.module.w", "module.x", "module.module.y", "plain"});
  normalise_kokoro_names(checkpoint);
  EXPECT_EQ(names_of(checkpoint), (Names{"bert.embeddings.w", "bert_encoder.weight",
                                         "decoder.encode.module.w", "module.x", "module.y", "plain"}));
  Checkpoint twice = checkpoint_of({"a.module.w", "a.w"});
  EXPECT_EQ(code_of([&] { normalise_kokoro_names(twice); }), ErrorCode::corrupt_file);
}

TEST(CodecNames, TheFixtureLosesItsSixBuffers) {
  Checkpoint checkpoint = Checkpoint::open(kFishData + "set_a/codec.pth");
  normalise_codec_names(checkpoint);
  EXPECT_EQ(checkpoint.tensors().size(), 409u);
}

}  // namespace
}  // namespace shoal::weights
