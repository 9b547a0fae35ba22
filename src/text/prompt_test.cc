#include "text/prompt.h"

#include <cstring>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/text_fixtures.h"

namespace shoal::text {
namespace {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> values;
};

// The int32 matrices of a safetensors file: 8-byte header length, JSON header, data. (This folder may not
// link weights.)
class Int32Tensors {
 public:
  explicit Int32Tensors(const std::string& path) : bytes_(read_file(path, int64_t{64} << 20)) {
    uint64_t header_bytes;
    std::memcpy(&header_bytes, bytes_.data(), 8);
    header_ = Json::parse(std::string_view(bytes_).substr(8, header_bytes), "safetensors header");
    data_ = 8 + header_bytes;
  }

  Matrix at(const std::string& name) const {
    const Json& entry = header_.at(name);
    EXPECT_EQ(entry.at("dtype").as_string(), "I32");
    const Json::Array& shape = entry.at("shape").as_array();
    Matrix matrix{shape[0].as_integer(), shape[1].as_integer(), {}};
    matrix.values.resize(static_cast<size_t>(matrix.rows * matrix.columns));
    const auto offset = data_ + static_cast<size_t>(entry.at("data_offsets").as_array()[0].as_integer());
    std::memcpy(matrix.values.data(), bytes_.data() + offset, matrix.values.size() * 4);
    return matrix;
  }

  // [rows, columns] -> [columns, rows]: prompts and codes stand one row per codebook in the fixtures.
  std::vector<int32_t> transposed(const std::string& name) const {
    const Matrix matrix = at(name);
    std::vector<int32_t> out;
    for (int64_t c = 0; c < matrix.columns; ++c) {
      for (int64_t r = 0; r < matrix.rows; ++r)
        out.push_back(matrix.values[static_cast<size_t>(r * matrix.columns + c)]);
    }
    return out;
  }

 private:
  std::string bytes_;
  Json header_;
  size_t data_ = 0;
};

constexpr int kCodebooks = 10;

// Texts of a golden case with the codes of the tensors `prefix0_codes`, `prefix1_codes`, ...
struct Speech {
  std::vector<std::vector<int32_t>> codes;
  std::vector<ReferenceCodes> list;
};
Speech read_speech(const Int32Tensors& tensors, const Json* texts, const std::string& prefix) {
  Speech speech;
  if (!texts) return speech;
  const Json::Array& items = texts->as_array();
  for (size_t i = 0; i < items.size(); ++i)
    speech.codes.push_back(tensors.transposed(prefix + std::to_string(i) + "_codes"));
  for (size_t i = 0; i < items.size(); ++i)
    speech.list.push_back({items[i].as_string(), speech.codes[i].data(),
                           static_cast<int64_t>(speech.codes[i].size()) / kCodebooks});
  return speech;
}

TEST(S1Prompt, EqualsTheReferencePrompts) {
  const auto tokenizer = load_s1_fixture();
  const Int32Tensors tensors(fixture("set_a/lm_goldens.safetensors"));
  const Json goldens = Json::read_file(fixture("set_a/lm_goldens.json"), int64_t{64} << 20);
  for (const auto& [name, golden] : goldens.at("cases").as_object()) {
    const Speech references = read_speech(tensors, golden.find("ref_texts"), "lm." + name + ".ref");
    for (const SpecialTokens policy : {SpecialTokens::recognise, SpecialTokens::as_text}) {
      const PromptColumns prompt =
          build_s1_prompt(*tokenizer, kCodebooks, references.list, golden.at("text").as_string(), policy);
      EXPECT_EQ(prompt.values, tensors.transposed("lm." + name + ".prompt")) << name;
      EXPECT_EQ(prompt.columns(), golden.at("prompt_len").as_integer()) << name;
    }
  }
}

TEST(S2Prompt, EqualsTheReferencePrompts) {
  const auto tokenizer = load_s2_fixture();
  const Int32Tensors tensors(fixture("set_s2/s2_goldens.safetensors"));
  const Json goldens = Json::read_file(fixture("set_s2/s2_goldens.json"), int64_t{64} << 20);
  for (const auto& [name, golden] : goldens.at("cases").as_object()) {
    const Speech references = read_speech(tensors, golden.find("ref_texts"), "s2." + name + ".ref");
    const Speech history = read_speech(tensors, golden.find("history"), "s2." + name + ".hist");
    const PromptColumns prompt = build_s2_prompt(*tokenizer, kCodebooks, references.list, history.list,
                                                 golden.at("text").as_string(), SpecialTokens::recognise);
    EXPECT_EQ(prompt.values, tensors.transposed("s2." + name + ".prompt")) << name;
  }
}

TEST(S1Prompt, ATypedEndTokenEndsNothingUnlessAllowed) {
  const auto tokenizer = load_s1_fixture();
  const auto ends = [&](SpecialTokens policy) {
    const PromptColumns prompt = build_s1_prompt(*tokenizer, 2, {}, "a<|im_end|>b", policy);
    int count = 0;
    for (size_t i = 0; i < prompt.values.size(); i += 3) count += prompt.values[i] == tokenizer->im_end();
    return count;
  };
  EXPECT_EQ(ends(SpecialTokens::recognise), 1);
  EXPECT_EQ(ends(SpecialTokens::as_text), 0);
}

TEST(S1Prompt, BadCodesAreNamed) {
  const auto tokenizer = load_s1_fixture();  // 32 semantic tokens
  const auto message_of = [&](std::vector<int32_t> codes) -> std::string {
    const ReferenceCodes reference{"x", codes.data(), 2};
    try {
      build_s1_prompt(*tokenizer, 2, {&reference, 1}, "y", SpecialTokens::as_text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(message_of({0, 99, 31, 5}), "");
  EXPECT_EQ(message_of({0, 0, 32, 5}), "reference codes: frame 1, codebook 0: code 32, expected 0 to 31");
  EXPECT_EQ(message_of({0, -1, 0, 0}), "reference codes: frame 0, codebook 1: code -1, expected 0 or more");
}

TEST(S2Turns, EqualTheReference) {
  const Json goldens = Json::read_file(fixture("set_s2/s2_goldens.json"), int64_t{64} << 20);
  const auto strings = [](const Json& array) {
    std::vector<std::string> out;
    for (const Json& item : array.as_array()) out.push_back(item.as_string());
    return out;
  };
  for (const Json& golden : goldens.at("splits").as_array()) {
    const std::vector<std::string> turns = split_s2_turns(golden.at("text").as_string());
    EXPECT_EQ(turns, strings(golden.at("turns")));
    EXPECT_EQ(group_s2_turns(turns, 40), strings(golden.at("batches")));
  }
}

TEST(S2Turns, GroupsKeepBothLimitsAndEveryTurn) {
  const std::vector<std::string> turns = {"aaaa", "bb", "c", "dddddddd", "e", "f", "g", "h", "i", "j"};
  EXPECT_EQ(group_s2_turns(turns, 7),
            (std::vector<std::string>{"aaaa\nbb\nc", "dddddddd", "e\nf\ng\nh\ni", "j"}));
  EXPECT_EQ(group_s2_turns(turns, 7, 2),
            (std::vector<std::string>{"aaaa\nbb", "c", "dddddddd", "e\nf", "g\nh", "i\nj"}));
  EXPECT_TRUE(group_s2_turns({}, 7).empty());
}

TEST(S2Turns, OnlyWholeTagsCount) {
  using Turns = std::vector<std::string>;
  EXPECT_EQ(split_s2_turns("<|speaker:|>a<|speaker:x|>b<|speaker:1|c"), Turns{});
  EXPECT_EQ(split_s2_turns("<|speaker:<|speaker:12|>\u3000a\u3000"), Turns{"<|speaker:12|>\u3000a"});
  EXPECT_EQ(split_s2_turns("<|speaker:123"), Turns{});
}

}  // namespace
}  // namespace shoal::text
