// A GPU's multiprocessors divided between two streams.
#include "ops/cuda/device/device_part.h"

#include <array>
#include <thread>

#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/stream_state.h"
#include "ops/device_state.h"
#include "ops/linear.h"
#include "ops/linear_testing.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

class CudaParts : public CudaTest {
 protected:
  static constexpr int kCut = 16;
  static constexpr int64_t kInputs = 1024, kOutputs = 1024;

  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    for (const Side side : {Side::first, Side::rest})
      sides_.push_back(std::make_unique<Execution>(kDevice, team_,
                                                   Execution::Options{.record = true, .part = {kCut, side}}));
    if (!sides_[0]->has_part() || !sides_[1]->has_part()) GTEST_SKIP() << "no green contexts here";
    pack(DType::bf16);
  }
  void pack(MatrixFormat format) {
    std::vector<float> weight = random_values(kOutputs * kInputs, 1, 0.05f);
    weight_ = pack_matrix(ctx(), view_of(weight, {kOutputs, kInputs}), {}, format);
    synchronize(ctx());
  }

  static int multiprocessors(Execution& side) { return state_of(side.context()).multiprocessors(); }

  Tensor random_rows(int64_t rows) {
    return put(random_values(rows * kInputs, static_cast<unsigned>(rows)), {rows, kInputs}, DType::bf16);
  }
  // The product of `rows` rows by way of a side's stream, as it is recorded the second time.
  std::vector<float> product(Execution& side, const Tensor& x) {
    const Tensor y = garbage({x.dim(0), kOutputs});
    Context& context = side.context();
    for (int run = 0; run < 3; ++run)
      run_step(context, {.owner = y.view().data(), .rows = x.dim(0)},
               [&] { linear(context, x, weight_, y); });
    synchronize(context);
    return get(y);
  }

  ThreadTeam team_{1};
  std::vector<std::unique_ptr<Execution>> sides_;
  PackedMatrix weight_;
};

TEST_F(CudaParts, TwoSidesAreTheWholeDevice) {
  const int all = ops::multiprocessors(kDevice);
  EXPECT_GE(all, 2 * kCut);
  int sum = 0;
  for (const auto& side : sides_) {
    EXPECT_EQ(multiprocessors(*side), all);
    use_share(side->context(), Share::part);
    EXPECT_LT(multiprocessors(*side), all);
    sum += multiprocessors(*side);
    use_share(side->context(), Share::whole);
    EXPECT_EQ(multiprocessors(*side), all);
  }
  EXPECT_EQ(sum, all);
}

TEST_F(CudaParts, BitsAreThoseOfTheWholeDevice) {
  for (const MatrixFormat& format : {MatrixFormat(DType::bf16), MatrixFormat(DType::i8, DType::bf16)}) {
    pack(format);
    for (const int64_t rows : {1, 8, 16, 64, 100, 200, 300, 1000}) {
      const Tensor x = random_rows(rows);
      const std::vector<float> whole = product(*sides_[0], x);
      for (const auto& side : sides_) {
        use_share(side->context(), Share::part);
        expect_same_bits(product(*side, x), whole);
        use_share(side->context(), Share::whole);
      }
    }
  }
}

TEST_F(CudaParts, RecordingsBelongToTheirShare) {
  Execution& side = *sides_[0];
  const Tensor x = random_rows(64), y = garbage({64, kOutputs});
  int calls = 0;
  for (const Share share : {Share::whole, Share::part, Share::whole, Share::part}) {
    use_share(side.context(), share);
    for (int run = 0; run < 3; ++run)
      run_step(side.context(), {.owner = this, .rows = 64}, [&] {
        ++calls;
        linear(side.context(), x, weight_, y);
      });
  }
  EXPECT_EQ(calls, 4) << "once as it is and once recorded, for each share";
}

TEST_F(CudaParts, BothSidesWorkAtOnce) {
  constexpr int64_t kRows = 300;
  const Tensor x = random_rows(kRows);
  const std::vector<float> want = product(*sides_[0], x);
  std::array<Tensor, 2> results{garbage({kRows, kOutputs}), garbage({kRows, kOutputs})};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < sides_.size(); ++i)
    threads.emplace_back([&, i] {
      Context& context = sides_[i]->context();
      for (int run = 0; run < 100; ++run) {
        // Between parts and all multiprocessors at any moment of the other's work.
        use_share(context, run % 10 < 7 ? Share::part : Share::whole);
        linear(context, x, weight_, results[i]);
      }
      synchronize(context);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) expect_same_bits(get(result), want);
}

TEST(PartOfDevice, NoneIsGivenWhereItCannotBe) {
  if (ops::multiprocessors({DeviceKind::cuda, 0}) == 0) GTEST_SKIP() << "no GPU";
  EXPECT_FALSE(part_of_device(0, {0, Side::first}, 0));
  EXPECT_FALSE(part_of_device(0, {100'000, Side::rest}, 0));
}

}  // namespace
}  // namespace shoal::ops::cuda
