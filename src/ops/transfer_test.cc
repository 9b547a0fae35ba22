#include "ops/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "ops/stream.h"

namespace shoal::ops {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class TransferTest : public testing::Test {
 protected:
  ThreadTeam team_{1};
  Workspace workspace_;
  Context ctx_{.team = &team_, .workspace = &workspace_};
};

TEST_F(TransferTest, OnTheCpuAnUploadIsAViewOfTheValues) {
  const std::vector<int32_t> ids = {1, 2, 3};
  const std::vector<int64_t> longs = {4};
  const std::vector<float> floats = {5, 6};
  const std::vector<std::byte> bytes(7);
  const auto expect_view = [](TensorView view, const void* data, DType dtype, int64_t count) {
    EXPECT_EQ(view.data(), data);
    EXPECT_EQ(view.dtype(), dtype);
    EXPECT_EQ(view.shape(), Shape{count});
  };
  expect_view(upload(ctx_, ids), ids.data(), DType::i32, 3);
  expect_view(upload(ctx_, longs), longs.data(), DType::i64, 1);
  expect_view(upload(ctx_, floats), floats.data(), DType::f32, 2);
  expect_view(upload(ctx_, bytes), bytes.data(), DType::u8, 7);
  EXPECT_EQ(upload(ctx_, std::span<const int32_t>()).elements(), 0);
  EXPECT_EQ(workspace_.growths(), 0);
}

TEST_F(TransferTest, DownloadsAreCopiesOfDenseTensors) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorView view = TensorView::of(values.data(), DType::f32, {3, 2});
  std::vector<float> part(4);
  download(ctx_, view.slice(1, 3), part.data());
  EXPECT_THAT(part, ElementsAre(3, 4, 5, 6));
  const Tensor copy = to_host(ctx_, view);
  EXPECT_EQ(copy.shape(), view.shape());
  EXPECT_NE(copy.view().data(), view.data());
  EXPECT_THAT(copy.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(to_host(ctx_, view.slice(1, 1)).elements(), 0);
  EXPECT_THROW(to_host(ctx_, view.columns(0, 1)), Error);
}

TEST_F(TransferTest, AHostTensorMadeResidentOnTheCpuIsNotCopied) {
  Tensor host = Tensor::zeros(DType::bf16, {3, 5});
  const void* const data = host.view().data();
  EXPECT_EQ(resident(ctx_, std::move(host)).view().data(), data);
  EXPECT_TRUE(resident(ctx_, {}).empty());
}

TEST_F(TransferTest, ZeroFillChangesOnlyItsView) {
  std::vector<int16_t> values(10, 7);
  const TensorView view = TensorView::of(values.data(), DType::i16, {5, 2});
  fill_zero(ctx_, view.slice(1, 3));
  EXPECT_THAT(values, ElementsAre(7, 7, 0, 0, 0, 0, 7, 7, 7, 7));
  fill_zero(ctx_, view.slice(4, 4));
  EXPECT_THROW(fill_zero(ctx_, view.columns(1, 2)), Error);
  synchronize(ctx_);
}

TEST_F(TransferTest, PlansNeedNoTablesOnTheCpu) {
  const std::vector<int32_t> offsets = {0, 1, 3}, positions = {4, 0, 1}, pages = {3, 2};
  const BatchPlan plan = on_device(ctx_, {{offsets}, positions, pages, 1, 16});
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
