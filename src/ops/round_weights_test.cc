#include "ops/round_weights.h"

#include <cstring>

#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

class RoundWeights : public testing::Test, protected MatrixFixture {
 protected:
  StoredMatrix rounded(TensorView weight) {
    integers_ = Tensor(DType::i8, weight.shape()), scales_ = Tensor(DType::f32, {weight.dim(0)});
    ThreadTeam team(2);
    error_ = round_to_int8(team, weight, integers_, scales_);
    return {integers_, scales_};
  }

  Tensor integers_, scales_;
  RoundingError error_;
};

TEST_F(RoundWeights, PackToTheBitsOfTheWeightsTheyWereMadeOf) {
  for (const Shape& shape : {Shape{1, 1}, Shape{17, 33}, Shape{48, 127}, Shape{70, 390}, Shape{64, 512}}) {
    std::vector<float> w = random_values(shape.elements(), 1);
    std::fill_n(w.begin(), shape[1], 0.0f);
    const StoredMatrix now = view_of(w, shape), ahead = rounded(now.weight);
    const auto packed = [&](const StoredMatrix& matrix) {
      std::string bytes;
      for (const PackedMatrix& p :
           {pack_matrix(ctx_, matrix, {}, DType::i8), pack_gate_up(ctx_, matrix, matrix, DType::i8),
            pack_stacked(ctx_, std::array{matrix, matrix}, {}, DType::i8)})
        for (const Tensor* part : {&p.storage, &p.scales})
          bytes.append(static_cast<const char*>(part->view().data()), static_cast<size_t>(part->bytes()));
      return bytes;
    };
    EXPECT_EQ(packed(ahead), packed(now)) << shape;
    EXPECT_THROW(pack_matrix(ctx_, ahead, {}, DType::f32), Error);
    EXPECT_THROW(pack_stacked(ctx_, std::array{ahead, now}, {}, DType::i8), Error);
  }
}

TEST_F(RoundWeights, TellHowFarTheyAre) {
  std::vector<float> w = {127.0f, 2.5f, -3.5f, 0.25f, 0, 0, 0, 0};
  rounded(view_of(w, {2, 4}));
  EXPECT_EQ(std::memcmp(integers_.view().data(), "\x7f\x02\xfc\0\0\0\0", 8), 0);
  EXPECT_EQ(scales_.as<float>()[0], 1.0f);
  EXPECT_EQ(scales_.as<float>()[1], 0.0f);
  EXPECT_DOUBLE_EQ(error_.share(), std::sqrt(0.5625 / (127.0 * 127 + 2.5 * 2.5 + 3.5 * 3.5 + 0.0625)));
  EXPECT_DOUBLE_EQ(error_.worst, error_.share());
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    w[5] = bad;
    EXPECT_THROW(rounded(view_of(w, {2, 4})), Error) << bad;
  }
}

}  // namespace
}  // namespace shoal::ops
