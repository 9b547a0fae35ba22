#include "weights/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

std::vector<TensorLocation> parse_arrays(const std::string& file) { return parse_npz(bytes_of(file), "x"); }
std::optional<ErrorCode> npz_code(const std::string& file) {
  return code_of([&] { parse_arrays(file); });
}
std::string npz_of(const std::string& array) { return zip_file({{"w.npy", array}}); }
// An archive of one array with that header and the given floats.
std::optional<ErrorCode> header_code(const std::string& dict, const std::vector<float>& values = {1, 2, 3}) {
  return npz_code(npz_of(npy_file(dict, array_bytes(values))));
}
std::vector<float> values_of(const std::string& file, const TensorLocation& tensor) {
  const Tensor copy = copy_dense(bytes_of(file), tensor);
  return {copy.span<float>().begin(), copy.span<float>().end()};
}

TEST(Npz, ReadsArraysInTheOrderOfTheArchive) {
  const std::string file =
      zip_file({{"zf_b.npy", npy_floats("(2, 1, 3)", {1, 2, 3, 4, 5, 6})},
                {"af_a.npy", npy_floats("(2,)", {7, 8})},
                {"scalar.npy", npy_floats("()", {9})},
                {"empty.npy", npy_floats("(0, 4)", {})},
                {"two.npy", npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
                                     array_bytes<float>({10}), 2)}});
  const auto arrays = parse_arrays(file);
  ASSERT_EQ(arrays.size(), 5u);
  EXPECT_EQ(arrays[0].name, "zf_b");
  EXPECT_EQ(arrays[0].shape, (Shape{2, 1, 3}));
  EXPECT_EQ(values_of(file, arrays[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(file, arrays[1]), (std::vector<float>{7, 8}));
  EXPECT_EQ(arrays[2].shape, Shape{});
  EXPECT_EQ(values_of(file, arrays[2]), std::vector<float>{9});
  EXPECT_TRUE(values_of(file, arrays[3]).empty());
  EXPECT_EQ(values_of(file, arrays[4]), std::vector<float>{10});
  EXPECT_TRUE(is_npz(bytes_of(file), "x"));
  EXPECT_FALSE(is_npz(bytes_of(small_torch_file()), "x"));
  EXPECT_FALSE(is_npz(bytes_of(zip_file({})), "x"));
}

// What numpy 1.24 writes for numpy.array([1.5], "<f4"), byte for byte.
TEST(Npz, ReadsNumpysOwnBytes) {
  const std::string array = concat(std::string("\x93NUMPY\x01\x00v\x00", 10),
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
                                   std::string(60, ' '), "\n", std::string("\x00\x00\xc0\x3f", 4));
  const std::string file = npz_of(array);
  ASSERT_EQ(npz_code(file), std::nullopt) << message_of([&] { parse_arrays(file); });
  EXPECT_EQ(values_of(file, parse_arrays(file)[0]), std::vector<float>{1.5f});
  EXPECT_EQ(npz_of(npy_floats("(1,)", {1.5f})), file);
}

TEST(Npz, SpacesAndKeyOrderDoNotMatter) {
  for (const char* dict : {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
                           "{'shape':(3,),'fortran_order':False,'descr':'<f4'}",
                           "{ 'descr' : '<f4' , 'shape' : ( 3 , ) , 'fortran_order' : False , }",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"}) {
    EXPECT_EQ(header_code(dict), std::nullopt) << dict;
  }
}

TEST(Npz, RefusesOtherTypesOrdersAndVersions) {
  for (const char* dict : {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
                           "{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }",
                           "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
                           "{'descr': '', 'fortran_order': False, 'shape': (3,), }",
                           "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 3), }"}) {
    EXPECT_EQ(header_code(dict), ErrorCode::unsupported) << dict;
  }
  std::string array = npy_floats("(1,)", {1});
  array[6] = 3;
  EXPECT_EQ(npz_code(npz_of(array)), ErrorCode::unsupported) << "version 3.0";
  array[6] = 1;
  array[7] = 1;
  EXPECT_EQ(npz_code(npz_of(array)), ErrorCode::unsupported) << "version 1.1";
}

TEST(Npz, RefusesBrokenHeaders) {
  const std::string cases[] = {
      "",
      "{}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'shape': (3,)}",
      "{'fortran_order': False, 'shape': (3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': (3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (+3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (,3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': [3]}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
      "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}",
      "{\"descr\": '<f4', 'fortran_order': False, 'shape': (3,)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,),, }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} \n",
      "'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
      "__import__('os').system('true')",
      "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3,)}",
  };
  for (const std::string& dict : cases) EXPECT_EQ(header_code(dict), ErrorCode::corrupt_file) << dict;
}

TEST(Npz, RefusesShapesThatDoNotFitTheData) {
  for (const char* shape :
       {"(2,)", "(4,)", "(3, 0)", "()", "(9223372036854775807,)", "(9223372036854775808,)",
        "(4611686018427387904, 4)", "(4294967296, 4294967296, 4294967296)", "(3, 99999999999999999999)",
        "(0, 9223372036854775807, 9223372036854775807)"}) {
    EXPECT_EQ(npz_code(npz_of(npy_floats(shape, {1, 2, 3}))), ErrorCode::corrupt_file) << shape;
  }
  EXPECT_EQ(npz_code(npz_of(npy_floats("(1,)", {1}) + "x")), ErrorCode::corrupt_file) << "a byte more";
}

TEST(Npz, RefusesOtherArchives) {
  const std::string array = npy_floats("(1,)", {1});
  EXPECT_EQ(npz_code(zip_file({{"a.npy", array}, {"a.npy", array}})), ErrorCode::corrupt_file) << "twice";
  EXPECT_EQ(npz_code(zip_file({{"a.npy", array}, {"readme.txt", "x"}})), ErrorCode::corrupt_file);
  EXPECT_EQ(npz_code(zip_file({{".npy", array}})), ErrorCode::corrupt_file) << "no name";
  EXPECT_EQ(npz_code(zip_file({{"a\n.npy", array}})), ErrorCode::corrupt_file);
  EXPECT_EQ(npz_code(zip_file({{.name = "a.npy", .data = array, .method = 8}})), ErrorCode::unsupported)
      << "savez_compressed";
  EXPECT_EQ(npz_code(npz_of("")), ErrorCode::corrupt_file);
  EXPECT_EQ(npz_code(npz_of("\x93NUMPX\x01")), ErrorCode::corrupt_file);
  EXPECT_EQ(npz_code("not a zip"), ErrorCode::corrupt_file);
  EXPECT_TRUE(parse_arrays(zip_file({})).empty());
  std::string huge = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234", 2);
  huge[11] = '\x7f';
  EXPECT_EQ(npz_code(npz_of(huge)), ErrorCode::too_large) << "a header of two gigabytes";
}

TEST(Npz, DamagedArchivesOpenOrThrowOurError) {
  for (const char major : {'\1', '\2'}) {
    const std::string file =
        zip_file({{"w.npy", npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                                     array_bytes<float>({0, 1, 2, 3, 4, 5}), major)}});
    ASSERT_EQ(npz_code(file), std::nullopt);
    damage(file, [](const std::string& bytes) {
      code_of([&] {
        for (const TensorLocation& tensor : parse_arrays(bytes)) copy_dense(bytes_of(bytes), tensor);
      });
    });
  }
}

}  // namespace
}  // namespace shoal::weights
