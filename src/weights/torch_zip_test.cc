#include "weights/torch_zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>;

std::vector<TensorLocation> parse_torch(const std::string& file) {
  return parse_torch_zip(bytes_of(file), "x");
}
std::optional<ErrorCode> torch_code(const std::string& file) {
  return code_of([&] { parse_torch(file); });
}

// An archive with storage "0" = six floats 0..5 and the given pickled value on top.
std::string torch_file(const std::string& top, const std::vector<ZipPart>& more = {}) {
  std::vector<ZipPart> parts = {{"m/data.pkl", pickle_file(top)},
                                {"m/data/0", array_bytes<float>({0, 1, 2, 3, 4, 5})}};
  parts.insert(parts.end(), more.begin(), more.end());
  return zip_file(parts);
}
std::string one_tensor(const TorchTensor& tensor) {
  return torch_file(pickle_dict({{"w", pickle_tensor(tensor)}}));
}
TorchTensor six(std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset = 0) {
  return {.storage_elements = 6, .offset = offset, .shape = std::move(shape), .strides = std::move(strides)};
}

std::vector<float> dense_values(const std::string& file, const TensorLocation& tensor) {
  const Tensor copy = copy_dense(bytes_of(file), tensor);
  return {copy.span<float>().begin(), copy.span<float>().end()};
}

TEST(TorchZip, ReadsAStateDict) {
  const std::string file = small_torch_file();
  const auto tensors = parse_torch(file);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(dense_values(file, tensors[0]), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(TorchZip, DescendsIntoStateDictAndSkipsOtherValues) {
  const std::string inner = pickle_dict({{"w", pickle_tensor(six({6}, {1}))}, {"step", pickle_integer(7)}});
  const auto tensors = parse_torch(torch_file(
      pickle_dict({{"epoch", "K\x01"}, {"state_dict", inner}, {"v", pickle_tensor(six({6}, {1}))}})));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "w");
}

std::vector<std::string> names_in(const std::string& file) {
  std::vector<std::string> names;
  for (const TensorLocation& tensor : parse_torch(file)) names.push_back(tensor.name);
  return names;
}

TEST(TorchZip, AcceptsADictWithoutTensors) {
  const std::string tensor = pickle_tensor(six({6}, {1}));
  const std::string bert = pickle_dict({{"module.w", tensor}, {"step", "K\x01"}});
  const std::string decoder =
      "ccollections\nOrderedDict\n)R" + pickle_text("b") + tensor + "s}" + pickle_text("_metadata") + "}sb";
  const std::string parts =
      pickle_dict({{"bert", bert}, {"epoch", "K\x01"}, {"options", "}"}, {"decoder", decoder}});
  EXPECT_EQ(names_in(torch_file(parts)), (std::vector<std::string>{"bert.module.w", "decoder.b"}));
  EXPECT_EQ(names_in(torch_file(pickle_dict({{"state_dict", parts}}))),
            (std::vector<std::string>{"bert.module.w", "decoder.b"}));
  // As ever: a dict with tensors of its own is all there is to it, and so is a state dict.
  EXPECT_EQ(names_in(torch_file(pickle_dict({{"optimizer", bert}, {"v", tensor}}))),
            std::vector<std::string>{"v"});
  EXPECT_EQ(names_in(torch_file(pickle_dict({{"bert", bert}, {"state_dict", pickle_dict({{"v", tensor}})}}))),
            std::vector<std::string>{"v"});
  EXPECT_TRUE(names_in(torch_file(pickle_dict({{"a", pickle_dict({{"b", bert}})}}))).empty())
      << "one level only";
}

TEST(TorchZip, ReadsPartsWithOddNames) {
  const std::string part = pickle_dict({{"w", pickle_tensor(six({6}, {1}))}});
  EXPECT_EQ(torch_code(torch_file(concat("}K\x01", part, "s"))), ErrorCode::corrupt_file) << "a number";
  EXPECT_EQ(torch_code(torch_file(pickle_dict({{"a\n", part}}))), ErrorCode::corrupt_file);
  EXPECT_EQ(torch_code(torch_file(pickle_dict({{std::string(129, 'a'), part}}))), ErrorCode::corrupt_file);
  EXPECT_EQ(torch_code(torch_file(pickle_dict({{std::string(128, 'a'), part}}))), std::nullopt);
  // One dict under many names would multiply its tensors.
  std::string twice = concat("}(", pickle_text("a"), part, "q\x05", pickle_text("b"), "h\x05u");
  EXPECT_EQ(torch_code(torch_file(twice)), ErrorCode::unsupported);
  twice = concat("}(", pickle_text("a"), "}q\x05", pickle_text("b"), "h\x05", pickle_text("c"), part, "u");
  EXPECT_EQ(names_in(torch_file(twice)), std::vector<std::string>{"c.w"}) << "empty ones are harmless";
  // A dict that is a part of itself.
  EXPECT_TRUE(names_in(torch_file(concat("}q\x05(", pickle_text("a"), "h\x05u"))).empty());
}

TEST(TorchZip, ReadsOneTensorWithoutADict) {
  const std::string file = torch_file(pickle_tensor(six({2, 2}, {2, 1}, 1)));
  const TensorLocation tensor = parse_torch_tensor(bytes_of(file), "x");
  EXPECT_EQ(tensor.shape, (Shape{2, 2}));
  EXPECT_EQ(dense_values(file, tensor), (std::vector<float>{1, 2, 3, 4}));
  const auto tensor_code = [](const std::string& bytes) {
    return code_of([&] { parse_torch_tensor(bytes_of(bytes), "x"); });
  };
  EXPECT_EQ(tensor_code(small_torch_file()), ErrorCode::unsupported) << "a dict";
  EXPECT_EQ(tensor_code(torch_file(pickle_tensor(six({4, 2}, {2, 1})))), ErrorCode::corrupt_file);
  EXPECT_EQ(tensor_code(torch_file("cos\nsystem\n")), ErrorCode::unsupported);
  damage(file, [](const std::string& bytes) {
    code_of([&] { copy_dense(bytes_of(bytes), parse_torch_tensor(bytes_of(bytes), "x")); });
  });
}

TEST(TorchZip, StridesAndSharedStorages) {
  const std::string file = torch_file(pickle_dict({{"transposed", pickle_tensor(six({3, 2}, {1, 3}))},
                                                   {"column", pickle_tensor(six({2}, {3}, 2))},
                                                   {"row", pickle_tensor(six({1, 3}, {77, 1}, 3))},
                                                   {"empty", pickle_tensor(six({0, 4}, {4, 1}, 6))},
                                                   {"scalar", pickle_tensor(six({}, {}, 5))}}));
  const auto tensors = parse_torch(file);
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_FALSE(tensors[0].is_dense());
  EXPECT_EQ(dense_values(file, tensors[0]), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(dense_values(file, tensors[1]), (std::vector<float>{2, 5}));
  EXPECT_TRUE(tensors[2].is_dense());
  EXPECT_EQ(dense_values(file, tensors[2]), (std::vector<float>{3, 4, 5}));
  EXPECT_TRUE(dense_values(file, tensors[3]).empty());
  EXPECT_EQ(dense_values(file, tensors[4]), (std::vector<float>{5}));
}

TEST(TorchZip, RefusesTensorsOutsideTheirStorage) {
  const int64_t huge = INT64_MAX;
  struct Case {
    const char* why;
    TorchTensor tensor;
    ErrorCode code;
  };
  const Case cases[] = {
      {"one too many", six({7}, {1}), ErrorCode::corrupt_file},
      {"offset pushes it out", six({6}, {1}, 1), ErrorCode::corrupt_file},
      {"offset beyond the end", six({0}, {1}, 7), ErrorCode::corrupt_file},
      {"negative offset", six({1}, {1}, -1), ErrorCode::corrupt_file},
      {"huge offset", six({1}, {1}, huge), ErrorCode::corrupt_file},
      {"stride leaves it", six({2}, {6}), ErrorCode::corrupt_file},
      {"negative stride", six({2}, {-1}, 3), ErrorCode::corrupt_file},
      {"stride overflows", six({3}, {huge}), ErrorCode::unsupported},
      {"sum of strides overflows", six({2, 2}, {huge - 1, huge}), ErrorCode::unsupported},
      {"huge shape", six({huge, huge}, {1, 1}), ErrorCode::corrupt_file},
      {"negative dimension", six({-6}, {1}), ErrorCode::corrupt_file},
      {"repeated by a zero stride", six({2, 6}, {0, 1}), ErrorCode::unsupported},
      {"billions by a zero stride", six({huge / 8}, {0}), ErrorCode::unsupported},
      {"overlapping windows", six({2, 3}, {1, 1}), ErrorCode::unsupported},
      {"ranks differ", six({2, 3}, {1}), ErrorCode::corrupt_file},
      {"six dimensions", six({1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}), ErrorCode::unsupported},
  };
  for (const Case& c : cases) EXPECT_EQ(torch_code(one_tensor(c.tensor)), c.code) << c.why;
}

TEST(TorchZip, RefusesStoragesOfTheWrongSize) {
  TorchTensor tensor = six({1}, {1});
  tensor.storage_elements = 5;
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "fewer than stored";
  tensor.storage_elements = 7;
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "more than stored";
  tensor.storage_elements = INT64_MAX / 2 + 4;  // times four = 12 bytes, modulo 2^64
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "overflow";
  tensor.storage_elements = -6;
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "negative";
  tensor = six({1}, {1});
  tensor.storage_type = "DoubleStorage";
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "other item size";
  tensor.storage_type = "ComplexFloatStorage";
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::unsupported);
  tensor = six({1}, {1});
  tensor.storage_key = "1";
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "no such entry";
  tensor.storage_key = "../data/0";
  EXPECT_EQ(torch_code(one_tensor(tensor)), ErrorCode::corrupt_file) << "entries are names, not paths";
}

TEST(TorchZip, RefusesOtherArchives) {
  EXPECT_EQ(torch_code(torch_file("]")), ErrorCode::unsupported) << "a list, not a dict";
  EXPECT_EQ(torch_code(torch_file(pickle_tensor(six({6}, {1})))), ErrorCode::unsupported) << "a bare tensor";
  EXPECT_EQ(torch_code(torch_file("}", {{"m/byteorder", "big"}})), ErrorCode::unsupported);
  EXPECT_EQ(torch_code(torch_file("}", {{"n/data.pkl", "N."}})), ErrorCode::corrupt_file) << "two pickles";
  EXPECT_EQ(torch_code(zip_file({{"m/data/0", "1234"}})), ErrorCode::corrupt_file) << "no pickle";
  EXPECT_EQ(torch_code(torch_file(concat("}K\x01", pickle_tensor(six({6}, {1})), "s"))),
            ErrorCode::corrupt_file)
      << "a number for a name";
  EXPECT_EQ(torch_code(torch_file(pickle_dict({{"a\nb", pickle_tensor(six({6}, {1}))}}))),
            ErrorCode::corrupt_file);
  const std::string old_format =
      "\x80\x02\x8a\nl\xfc\x9c"
      "F\xf9 j\xa8P\x19.";
  EXPECT_THAT(message_of([&] { parse_torch(old_format); }), testing::HasSubstr("torch before 1.6"));
}

TEST(TorchZip, AZipBombIsRefusedUnread) {
  // A kilobyte that claims to inflate to four gigabytes.
  const ZipPart bomb{.name = "m/data/0", .data = std::string(1000, 'x'), .method = 8, .size = 0xfffffffe};
  EXPECT_EQ(torch_code(zip_file({{"m/data.pkl", pickle_file("}")}, bomb})), ErrorCode::unsupported);
}

TEST(TorchZip, DamagedFilesOpenOrThrowOurError) {
  const std::string file = small_torch_file();
  damage(file, [](const std::string& bytes) {
    code_of([&] {
      for (const TensorLocation& tensor : parse_torch(bytes)) copy_dense(bytes_of(bytes), tensor);
    });
  });
}

}  // namespace
}  // namespace shoal::weights
