#include "weights/torch_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "weights/archives_testing.h"
#include "weights/torch_zip.h"
#include "weights/zip.h"

namespace shoal::weights {
namespace {

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), -3.5f);
  return values;
}

TEST(TorchWriter, OurReaderReadsItBack) {
  for (const Shape& shape : {Shape{510, 1, 256}, Shape{7}, Shape{2, 3}, Shape{2, 1, 70, 2}, Shape{}}) {
    const std::vector<float> values = ramp(static_cast<size_t>(shape.elements()));
    const std::string file = write_torch_tensor(values, shape);
    const TensorLocation tensor = parse_torch_tensor(bytes_of(file), "x");
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(tensor.dtype, DType::f32);
    const Tensor copy = copy_dense(bytes_of(file), tensor);
    EXPECT_THAT(copy.span<float>(), ::testing::ElementsAreArray(values));
    EXPECT_EQ(write_torch_tensor(values, shape), file);
  }
}

// Opcode for opcode, the memo's numbers included, as torch.save wrote the tensors of tests/data/kokoro.
TEST(TorchWriter, ThePickleEqualsTorchSave) {
  using std::string_literals::operator""s;
  const std::string file = write_torch_tensor(ramp(510 * 256), {510, 1, 256});
  const std::vector<ZipEntry> entries = read_zip_directory(bytes_of(file), "x");
  const std::string wanted =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\nq\0(("s
      "X\x07\0\0\0storageq\x01"
      "ctorch\nFloatStorage\nq\x02X\x01\0\0\0"
      "0q\x03X\x03\0\0\0cpuq\x04"s
      "J\0\xfe\x01\0tq\x05QK\0M\xfe\x01K\x01M\0\x01\x87q\x06M\0\x01M\0\x01K\x01\x87q\x07\x89"s
      "ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."s;
  const auto text_of = [](const ZipEntry& entry) {
    return std::string(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  };
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "tensor/data.pkl");
  EXPECT_EQ(text_of(entries[0]), wanted);
  EXPECT_EQ(entries[1].name, "tensor/byteorder");
  EXPECT_EQ(text_of(entries[1]), "little");
  EXPECT_EQ(entries[2].name, "tensor/data/0");
  EXPECT_EQ(entries[3].name, "tensor/version");
  EXPECT_EQ(text_of(entries[3]), "3\n");
  for (const ZipEntry& entry : entries)
    EXPECT_EQ((entry.bytes.data() - bytes_of(file).data()) % 64, 0) << entry.name;
}

// Readers other than ours check the sum: that of "little" is from Python's zlib.crc32.
TEST(TorchWriter, EntriesCarryTheirCheckSums) {
  const std::string file = write_torch_tensor(ramp(1), {1});
  const std::string size = little<uint32_t>(6);
  EXPECT_EQ(file.find(concat(little<uint32_t>(0x19e33d85), size, size)) != std::string::npos, true);
}

}  // namespace
}  // namespace shoal::weights
