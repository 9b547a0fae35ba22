#include "ops/transfer.h"

#include <gmock/gmock.h>
#include <numeric>

#include "ops/op_testing.h"
#include "ops/stream.h"

namespace shoal::ops {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int32_t> counted_from(int32_t first, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

class TransferTest : public OpTest {};

TEST_P(TransferTest, TensorsKeepTheirValues) {
  const std::vector<float> values = {0.0f, -1.5f, 3.14159f, 1e-3f, 65504.0f, 7.0f};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor there = put(values, {2, 3}, dtype);
    if (on_gpu()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(there.view().data()) % 256, 0u);
    }
    EXPECT_EQ(get(there), rounded_to(values, dtype));
    EXPECT_EQ(get(there.view().columns(1, 3)),
              rounded_to(std::vector<float>{values[1], values[2], values[4], values[5]}, dtype));
  }
}

TEST_P(TransferTest, UploadsOfEverySizeArrive) {
  for (const int64_t count : {0, 1, 3, 4, 1023, 262'144, 262'145, 1'000'003}) {
    const Workspace::Scope scope(*ctx().workspace);
    const std::vector<int32_t> values = counted_from(5, count);
    const TensorView there = upload(ctx(), values);
    EXPECT_EQ(there.shape(), Shape{count});
    EXPECT_EQ(there.device(), ctx().device);
    std::vector<int32_t> back(values.size(), -1);
    download(ctx(), there, back.data());
    EXPECT_EQ(back, values);
  }
}

TEST_P(TransferTest, DownloadsAreCopiesOfDenseTensors) {
  const Tensor values = put(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const TensorView view = values;
  std::vector<float> part(4);
  download(ctx(), view.slice(1, 3), part.data());
  EXPECT_THAT(part, ElementsAre(3, 4, 5, 6));
  const Tensor copied = to_host(ctx(), view);
  EXPECT_EQ(copied.shape(), view.shape());
  EXPECT_NE(copied.view().data(), view.data());
  EXPECT_THAT(copied.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(to_host(ctx(), view.slice(1, 1)).elements(), 0);
  EXPECT_THROW(to_host(ctx(), view.columns(0, 1)), Error);
}

TEST_P(TransferTest, ADownloadWaitsForEarlierWork) {
  const Tensor there = put(counted_from(0, 1 << 22), {1 << 22});
  for (const int64_t count : {int64_t{7}, int64_t{1} << 22}) {
    const TensorView part = there.view().slice(0, count);
    fill_zero(ctx(), part);
    std::vector<int32_t> back(static_cast<size_t>(count), -1);
    download(ctx(), part, back.data());
    EXPECT_EQ(back, std::vector<int32_t>(back.size(), 0));
  }
}

TEST_P(TransferTest, ZerosFillExactlyTheView) {
  const std::vector<float> ones(4096, 1.0f);
  for (const int64_t begin : {0, 1, 2, 7, 8})
    for (const int64_t count : {0, 1, 2, 7, 8, 9, 31, 1000, 4000}) {
      const Tensor there = put(ones, {4096}, DType::bf16);
      fill_zero(ctx(), there.view().slice(begin, begin + count));
      std::vector<float> want = ones;
      std::fill_n(want.begin() + begin, count, 0.0f);
      ASSERT_EQ(get(there), want) << begin << ' ' << count;
    }
  EXPECT_THROW(fill_zero(ctx(), garbage({5, 2}).view().columns(1, 2)), Error);
}

TEST_P(TransferTest, HostTensorsMoveAndComeBack) {
  Tensor host(DType::i32, {5, 3});
  std::ranges::copy(counted_from(0, 15), host.as<int32_t>());
  const Tensor there = resident(ctx(), std::move(host));
  EXPECT_EQ(there.view().device(), ctx().device);
  const Tensor back = to_host(ctx(), there);
  EXPECT_EQ(back.view().device(), Device{});
  EXPECT_EQ(back.shape(), (Shape{5, 3}));
  for (int32_t i = 0; i < 15; ++i) EXPECT_EQ(back.span<int32_t>()[static_cast<size_t>(i)], i);
  EXPECT_TRUE(resident(ctx(), {}).empty());
}

TEST_P(TransferTest, ZeroedTensorsAndCopiesBetweenTensors) {
  const Tensor zeros = Tensor::zeros(DType::i32, {1000}, ctx().device),
               other(DType::i32, {1000}, ctx().device);
  EXPECT_THAT(get_ints(zeros), Each(0));
  copy(put(counted_from(0, 1000), {1000}), other);
  EXPECT_EQ(get_ints(other), counted_from(0, 1000));
}

INSTANTIATE_TEST_SUITE_P(Machine, TransferTest, testing::ValuesIn(every_machine()), name_of_machine);

class TransferOnTheCpu : public testing::Test, protected OpFixture {
 protected:
  void SetUp() override { open(machines_of({CpuIsa::portable}).front()); }
};

TEST_F(TransferOnTheCpu, AnUploadIsAViewOfTheValues) {
  const std::vector<int32_t> ids = {1, 2, 3};
  const std::vector<int64_t> longs = {4};
  const std::vector<float> floats = {5, 6};
  const std::vector<std::byte> bytes(7);
  const auto expect_view = [](TensorView view, const void* data, DType dtype, int64_t count) {
    EXPECT_EQ(view.data(), data);
    EXPECT_EQ(view.dtype(), dtype);
    EXPECT_EQ(view.shape(), Shape{count});
  };
  expect_view(upload(ctx(), ids), ids.data(), DType::i32, 3);
  expect_view(upload(ctx(), longs), longs.data(), DType::i64, 1);
  expect_view(upload(ctx(), floats), floats.data(), DType::f32, 2);
  expect_view(upload(ctx(), bytes), bytes.data(), DType::u8, 7);
  EXPECT_EQ(upload(ctx(), std::span<const int32_t>()).elements(), 0);
  EXPECT_EQ(ctx().workspace->growths(), 0);
}

TEST_F(TransferOnTheCpu, AHostTensorMadeResidentIsNotCopied) {
  Tensor host = Tensor::zeros(DType::bf16, {3, 5});
  const void* const data = host.view().data();
  EXPECT_EQ(resident(ctx(), std::move(host)).view().data(), data);
}

TEST_F(TransferOnTheCpu, PlansNeedNoTables) {
  const std::vector<int32_t> offsets = {0, 1, 3}, positions = {4, 0, 1}, pages = {3, 2};
  const BatchPlan plan = on_device(ctx(), {{offsets}, positions, pages, 1, 16});
  EXPECT_EQ(plan.rows.offsets.data(), offsets.data());
  EXPECT_EQ(plan.positions.data(), positions.data());
  EXPECT_EQ(plan.page_table.data(), pages.data());
  EXPECT_EQ(plan.pages_per_sequence, 1);
  EXPECT_EQ(plan.page_size, 16);
  EXPECT_TRUE(plan.tables.offsets.empty());
}

TEST(Streams, TheCpuNeedsNoStream) { EXPECT_EQ(Stream::create({}), nullptr); }

}  // namespace
}  // namespace shoal::ops
