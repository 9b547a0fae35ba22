#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

using testing::HasSubstr;

std::vector<TensorLocation> parse_header(const std::string& file) {
  return parse_safetensors(bytes_of(file), "x");
}

std::optional<ErrorCode> header_code_for(const std::string& header, const std::string& data) {
  return code_of([&] { parse_header(safetensors_file(header, data)); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int64_t begin,
                  int64_t end) {
  return concat("\"", name, R"(":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":[)", begin,
                ",", end, "]}");
}

std::string braced(const std::string& members) { return concat("{", members, "}"); }

TEST(Safetensors, ReadsTensorsInHeaderOrder) {
  const std::string header =
      braced(entry("b", "BF16", "[2,3]", 4, 16) + R"(,"__metadata__":{"format":"pt"},)" +
             entry("a", "F32", "[]", 0, 4) + "," + entry("none", "I64", "[0,7]", 16, 16)) +
      "  ";
  const auto tensors = parse_header(safetensors_file(header, std::string(16, '\0')));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_EQ(tensors[0].dtype, DType::bf16);
  EXPECT_EQ(tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(tensors[0].offset, static_cast<int64_t>(8 + header.size() + 4));
  EXPECT_TRUE(tensors[0].is_dense());
  EXPECT_EQ(tensors[1].shape, Shape{});
  EXPECT_EQ(tensors[2].bytes(), 0);
}

TEST(Safetensors, RefusesInvalidHeaders) {
  const std::string four(4, '\0');
  struct Case {
    const char* why;
    std::string header;
    ErrorCode code;
  };
  const Case cases[] = {
      {"array instead of an object", "[]", ErrorCode::corrupt_file},
      {"not JSON", "{\"a\":", ErrorCode::corrupt_file},
      {"the tensor is a number", R"({"a":3})", ErrorCode::corrupt_file},
      {"no dtype", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", ErrorCode::corrupt_file},
      {"unknown dtype", braced(entry("a", "F8_E5M2", "[4]", 0, 4)), ErrorCode::unsupported},
      {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", ErrorCode::corrupt_file},
      {"shape of floats", braced(entry("a", "F32", "[1.0]", 0, 4)), ErrorCode::corrupt_file},
      {"negative dimension", braced(entry("a", "F32", "[-1]", 0, 4)), ErrorCode::corrupt_file},
      {"two negative dimensions", braced(entry("a", "F32", "[-1,-1]", 0, 4)), ErrorCode::corrupt_file},
      {"product overflows to 4 bytes", braced(entry("a", "U8", "[4294967297,4294967292]", 0, 4)),
       ErrorCode::corrupt_file},
      {"product overflows to 0", braced(entry("a", "F32", "[4294967296,4294967296]", 0, 0)),
       ErrorCode::corrupt_file},
      {"strides of an empty tensor overflow", braced(entry("a", "F32", "[0,4611686018427387904,8]", 0, 0)),
       ErrorCode::corrupt_file},
      {"six dimensions", braced(entry("a", "F32", "[1,1,1,1,1,1]", 0, 4)), ErrorCode::unsupported},
      {"shape smaller than its bytes", braced(entry("a", "BF16", "[1]", 0, 4)), ErrorCode::corrupt_file},
      {"shape larger than its bytes", braced(entry("a", "F32", "[2]", 0, 4)), ErrorCode::corrupt_file},
      {"beyond the end", braced(entry("a", "F32", "[2]", 0, 8)), ErrorCode::corrupt_file},
      {"far beyond the end", braced(entry("a", "F32", "[1]", 9223372036854775800, 9223372036854775804)),
       ErrorCode::corrupt_file},
      {"begins before the data", braced(entry("a", "F32", "[1]", -4, 0)), ErrorCode::corrupt_file},
      {"ends before it begins", braced(entry("a", "F32", "[0]", 4, 0)), ErrorCode::corrupt_file},
      {"one offset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", ErrorCode::corrupt_file},
      {"same tensor twice", braced(entry("a", "F16", "[1]", 0, 2) + "," + entry("a", "F16", "[1]", 2, 4)),
       ErrorCode::corrupt_file},
      {"overlap", braced(entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F16", "[1]", 2, 4)),
       ErrorCode::corrupt_file},
      {"twice the same bytes", braced(entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F32", "[1]", 0, 4)),
       ErrorCode::corrupt_file},
      {"hole at the front", braced(entry("a", "F16", "[1]", 2, 4)), ErrorCode::corrupt_file},
      {"a hole as large as an overlap",
       braced(entry("a", "U8", "[2]", 1, 3) + "," + entry("b", "U8", "[2]", 2, 4)), ErrorCode::corrupt_file},
      {"bytes left over", braced(entry("a", "F16", "[1]", 0, 2)), ErrorCode::corrupt_file},
      {"no tensor but data", "{}", ErrorCode::corrupt_file},
      {"no name", braced(entry("", "F32", "[1]", 0, 4)), ErrorCode::corrupt_file},
      {"terminal codes in the name", braced(entry("a\\u001b[2J", "F32", "[1]", 0, 4)),
       ErrorCode::corrupt_file},
  };
  EXPECT_EQ(header_code_for(braced(entry("a", "F32", "[1]", 0, 4)), four), std::nullopt);
  for (const Case& c : cases) EXPECT_EQ(header_code_for(c.header, four), c.code) << c.why;
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  const std::string rest = concat("{}", std::string(64, ' '));
  for (uint64_t length : {uint64_t{67}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    EXPECT_EQ(code_of([&] { parse_header(little(length) + rest); }), ErrorCode::corrupt_file) << length;
  }
  EXPECT_EQ(code_of([&] { parse_header(little(uint64_t{66}) + rest); }), std::nullopt);
  EXPECT_EQ(code_of([] { parse_header(""); }), ErrorCode::corrupt_file);
  const size_t limit = size_t{16} << 20;
  EXPECT_EQ(code_of([&] { parse_header(safetensors_file(concat("{}", std::string(limit - 2, ' ')), "")); }),
            std::nullopt);
  EXPECT_EQ(code_of([&] { parse_header(safetensors_file(concat("{}", std::string(limit - 1, ' ')), "")); }),
            ErrorCode::too_large);
}

TEST(Safetensors, MessageNamesFileTensorAndBothSizes) {
  const std::string file = safetensors_file(braced(entry("head.weight", "BF16", "[3,5]", 0, 4)), "1234");
  const std::string message = message_of([&] { parse_safetensors(bytes_of(file), "model.safetensors"); });
  EXPECT_THAT(message, testing::AllOf(HasSubstr("model.safetensors"), HasSubstr("head.weight"),
                                      HasSubstr("[3, 5]"), HasSubstr("30"), HasSubstr("4")));
}

TEST(Safetensors, DamagedFilesOpenOrThrowOurError) {
  const std::string file =
      safetensors_file(braced(entry("a", "F32", "[2,2]", 0, 16) + "," + entry("b", "U8", "[3]", 16, 19)),
                       std::string(19, '\1'));
  ASSERT_EQ(parse_header(file).size(), 2u);
  int refused = 0;
  damage(file, [&](const std::string& bytes) {
    const auto code = code_of([&] {
      for (const TensorLocation& tensor : parse_header(bytes)) copy_dense(bytes_of(bytes), tensor);
    });
    refused += code.has_value();
  });
  EXPECT_GT(refused, static_cast<int>(file.size()));  // every truncation, and flips besides
}

}  // namespace
}  // namespace shoal::weights
