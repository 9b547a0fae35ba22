// The table of choose.h, row by row, at its limits and beside them.
#include "ops/cuda/gemm/choose.h"

#include <future>
#include <gtest/gtest.h>
#include <tuple>

#include "ops/cuda/gemm/sm90/wide_choice.h"
#include "ops/cuda/gemm/tile/tile_choice.h"

namespace shoal::ops::cuda {

// What a failed expectation prints.
void PrintTo(const GemmChoice& choice, std::ostream* out) {
  *out << "kernel " << static_cast<int>(choice.kernel) << (choice.rounds ? ", rounds" : "");
}

namespace {

const Machine kH200{132, 227 << 10, true}, kA100{108, 163 << 10}, kRtx4090{128, 99 << 10};
// Matrices of S1-mini: wqkv, w1 and w3 as a pair, w2 and wo of the slow layers.
const MatrixShape kQkv{4096, 1, 1024}, kGateUp{3072, 1, 1024, true}, kDown{1024, 1, 3072},
    kOut{1024, 1, 2048};
const MatrixShape kConv{512, 7, 512};

GemmKernel kernel(const Gemm& gemm, const Machine& machine = kH200) { return choose(gemm, machine).kernel; }

TEST(ChooseGemm, F32TakesFewRowsForUpToEightRowsInPlace) {
  for (const auto& [machine, few_rows, slices] :
       {std::tuple(kH200, GemmKernel::tf32_few_rows, GemmKernel::tf32_slices),
        std::tuple(kA100, GemmKernel::f32_few_rows, GemmKernel::f32_slices)}) {
    const Gemm few{.shape = {4096, 1, 1024}, .operand = DType::f32, .rows = 8};
    EXPECT_EQ(kernel(few, machine), few_rows);
    Gemm other = few;
    other.rows = 9;
    EXPECT_EQ(kernel(other, machine), slices);
    other = few, other.rows_in_place = false;
    EXPECT_EQ(kernel(other, machine), slices);
    other = few, other.shape.taps = 3;
    EXPECT_EQ(kernel(other, machine), slices);
    other = few, other.shape.depth = 63;
    EXPECT_EQ(kernel(other, machine), GemmKernel::f32_few_rows);
    other.shape.depth = 64;
    EXPECT_EQ(kernel(other, machine), few_rows);
  }
}

TEST(ChooseGemm, F32TakesBlocksWhereTheyFillTheGpu) {
  const auto chosen = [](const MatrixShape& shape, int64_t rows, const Machine& machine) {
    return kernel({.shape = shape, .operand = DType::f32, .rows = rows}, machine);
  };
  const MatrixShape wide{4096, 1, 1024};
  // 216 blocks of 64 x 64 results keep 108 multiprocessors busy.
  EXPECT_EQ(chosen(wide, 3 * 64, kA100), GemmKernel::f32_slices);
  EXPECT_EQ(chosen(wide, 3 * 64 + 1, kA100), GemmKernel::f32_blocks);
  // From 132 * 8 / 5 blocks on, and with three taps from 132 * 3 / 5.
  EXPECT_EQ(chosen(wide, 3 * 64, kH200), GemmKernel::tf32_slices);
  EXPECT_EQ(chosen(wide, 3 * 64 + 1, kH200), GemmKernel::tf32_blocks);
  const MatrixShape taps{512, 3, 512};
  EXPECT_EQ(chosen(taps, 9 * 64, kH200), GemmKernel::tf32_slices);
  EXPECT_EQ(chosen(taps, 9 * 64 + 1, kH200), GemmKernel::tf32_blocks);
  const MatrixShape many_taps{512, 11, 512};  // 8 of which have warps at a time
  EXPECT_EQ(chosen(many_taps, 26 * 64, kH200), GemmKernel::tf32_slices);
  EXPECT_EQ(chosen(many_taps, 26 * 64 + 1, kH200), GemmKernel::tf32_blocks);
}

TEST(ChooseGemm, UpTo16RowsOfS1MinisMatricesTakeSkinnyOnEveryGpu) {
  for (const Machine& machine : {kH200, kA100, kRtx4090})
    for (const MatrixShape& shape : {kQkv, kGateUp, kDown, kOut}) {
      EXPECT_EQ(kernel({.shape = shape, .rows = 1}, machine), GemmKernel::skinny);
      EXPECT_EQ(kernel({.shape = shape, .rows = 16}, machine), GemmKernel::skinny);
      EXPECT_NE(kernel({.shape = shape, .rows = 17}, machine), GemmKernel::skinny);
    }
}

TEST(ChooseGemm, LargeMatricesTakeSkinnyUpTo8Rows) {
  const MatrixShape large{6144, 1, 2560};  // of S2-Pro
  EXPECT_EQ(kernel({.shape = large, .rows = 8}), GemmKernel::skinny);
  EXPECT_EQ(kernel({.shape = large, .rows = 9}), GemmKernel::wide);
  EXPECT_EQ(kernel({.shape = large, .form = {.bits = 8}, .rows = 8}), GemmKernel::skinny);
  EXPECT_EQ(kernel({.shape = large, .form = {.bits = 8}, .rows = 9}), GemmKernel::swapped);
  EXPECT_EQ(kernel({.shape = large, .form = {.bits = 4, .shift = 2}, .rows = 16}), GemmKernel::skinny);
  EXPECT_EQ(kernel({.shape = large, .rows = 16}, kA100), GemmKernel::skinny);
}

TEST(ChooseGemm, SeveralTapsAndSnakesNeverTakeSkinny) {
  const Gemm one_tap{.shape = {512, 1, 512}, .rows = 16, .linear = false};
  EXPECT_EQ(kernel(one_tap), GemmKernel::skinny);
  Gemm other = one_tap;
  other.shape.taps = 2;
  EXPECT_NE(kernel(other), GemmKernel::skinny);
  other = one_tap, other.snake = true;
  EXPECT_NE(kernel(other), GemmKernel::skinny);
}

TEST(ChooseGemm, SkinnyRoundsUpTo16RowsAndNormsUpTo8) {
  const GemmChoice rounding{GemmKernel::skinny, true}, not_rounding{GemmKernel::skinny, false};
  EXPECT_EQ(choose({.shape = kQkv, .rows = 16, .f32_rows = true}, kH200), rounding);
  EXPECT_EQ(choose({.shape = kQkv, .rows = 8, .f32_rows = true, .norm = true}, kH200), rounding);
  EXPECT_EQ(choose({.shape = kQkv, .rows = 9, .f32_rows = true, .norm = true}, kH200), not_rounding);
  EXPECT_EQ(choose({.shape = kQkv, .rows = 8, .norm = true}, kH200), not_rounding);
}

// Eight normed rows of 16384 inputs take 256 KiB.
TEST(ChooseGemm, SkinnyNormsOnlyRowsThatFitIntoSharedMemory) {
  const MatrixShape shape{24, 1, 16384};
  EXPECT_FALSE(choose({.shape = shape, .rows = 8, .f32_rows = true, .norm = true}, kH200).rounds);
  EXPECT_EQ(kernel({.shape = shape, .rows = 8, .f32_rows = true, .norm = true}), GemmKernel::skinny);
}

TEST(ChooseGemm, WeightsOfFewerBitsTakeSwapped) {
  for (const TileForm& form : {TileForm{8}, TileForm{4, 0}, TileForm{4, 1}}) {
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 16}), GemmKernel::skinny);
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 17}), GemmKernel::swapped);
    EXPECT_EQ(kernel({.shape = kGateUp, .form = form, .rows = 64}), GemmKernel::swapped);
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 192}), GemmKernel::swapped);
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 5000}), GemmKernel::swapped);
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 64, .plain = false}), GemmKernel::swapped);
    EXPECT_NE(kernel({.shape = kQkv, .form = form, .rows = 64, .plain = false, .activated = true}),
              GemmKernel::swapped);
    EXPECT_EQ(kernel({.shape = kQkv, .form = form, .rows = 64}, kA100), GemmKernel::tile);
    EXPECT_NE(kernel({.shape = kQkv, .form = form, .rows = 64, .linear = false}), GemmKernel::swapped);
    EXPECT_NE(kernel({.shape = {4096, 1, 1000}, .form = form, .rows = 64}), GemmKernel::swapped);
  }
  EXPECT_EQ(kernel({.shape = kQkv, .form = {.bits = 4, .shift = 2}, .rows = 64}), GemmKernel::resident);
}

TEST(ChooseGemm, LinearLayersOf17To64RowsTakeResident) {
  for (const int64_t rows : {17, 64}) {
    EXPECT_EQ(kernel({.shape = kQkv, .rows = rows}), GemmKernel::resident);
    EXPECT_EQ(kernel({.shape = kGateUp, .rows = rows}), GemmKernel::resident);
  }
  EXPECT_EQ(kernel({.shape = kQkv, .rows = 65}), GemmKernel::broad);
  EXPECT_NE(kernel({.shape = {4096, 1, 1000}, .rows = 64}), GemmKernel::resident);  // uneven segments
  EXPECT_NE(kernel({.shape = {8192, 1, 1024}, .rows = 64}), GemmKernel::resident);  // no room for all of it
  EXPECT_NE(kernel({.shape = kQkv, .rows = 64, .linear = false}), GemmKernel::resident);
}

TEST(ChooseGemm, PlainLinearLayersFrom65RowsTakeBroad) {
  EXPECT_EQ(kernel({.shape = kQkv, .rows = 256}), GemmKernel::broad);
  EXPECT_EQ(kernel({.shape = kGateUp, .rows = 256}), GemmKernel::broad);
  const auto is_other = [](GemmKernel chosen) {
    return chosen == GemmKernel::wide || chosen == GemmKernel::tile;
  };
  EXPECT_TRUE(is_other(kernel({.shape = kQkv, .rows = 512})));  // more blocks than run at once
  EXPECT_TRUE(is_other(kernel({.shape = kQkv, .rows = 256, .plain = false})));
  EXPECT_TRUE(is_other(kernel({.shape = kQkv, .rows = 256, .linear = false})));
  EXPECT_TRUE(is_other(kernel({.shape = {4096, 1, 1056}, .rows = 256})));
}

TEST(ChooseGemm, OtherProductsTakeTheFasterOfWideAndTile) {
  for (const MatrixShape& shape : {kConv, MatrixShape{4096, 1, 1024}, {64, 3, 40}})
    for (const int64_t rows : {17, 100, 1000, 30'000}) {
      const Gemm gemm{.shape = shape, .rows = rows, .linear = false, .snake = rows == 100};
      EXPECT_EQ(kernel(gemm), is_wide(shape, rows, kH200) ? GemmKernel::wide : GemmKernel::tile);
    }
  EXPECT_EQ(kernel({.shape = kConv, .rows = 30'000, .linear = false}), GemmKernel::wide);
  EXPECT_EQ(kernel({.shape = {64, 3, 40}, .rows = 17, .linear = false}), GemmKernel::tile);
}

// By a thread that has met none of these sizes: more than are remembered, and all of them twice.
TEST(ChooseGemm, WhatIsRememberedIsWhatIsChosenAnew) {
  const auto choices = [](const MatrixShape& shape, int64_t rows, const Machine& machine) {
    return std::tuple{choose_wide(shape, rows, machine), choose_tile(shape, rows, machine),
                      is_wide(shape, rows, machine)};
  };
  for (int round = 0; round < 2; ++round) {
    for (int64_t rows = 1; rows < 600; rows += 13) {
      for (const MatrixShape& shape : {kQkv, kGateUp, kDown, kConv, MatrixShape{64, 3, 40}}) {
        for (const Machine& machine : {kH200, Machine{64, 227 << 10, true}, kRtx4090}) {
          const auto remembered = choices(shape, rows, machine);
          EXPECT_EQ(remembered, std::async(std::launch::async, choices, shape, rows, machine).get());
        }
      }
    }
  }
}

TEST(ChooseGemm, WithoutWgmmaMoreThan16RowsTakeTile) {
  for (const Machine& machine : {kA100, kRtx4090})
    for (const int64_t rows : {17, 64, 65, 256, 4096}) {
      EXPECT_EQ(kernel({.shape = kQkv, .rows = rows}, machine), GemmKernel::tile);
      EXPECT_EQ(kernel({.shape = kConv, .rows = rows, .linear = false}, machine), GemmKernel::tile);
    }
}

TEST(ChooseGemm, ResidualSumsWaitFor17To384RowsAndOfLargeMatricesFor9To256) {
  const auto waits = [](const MatrixShape& shape, int64_t rows, const Machine& machine = kH200,
                        DType operand = DType::bf16, const TileForm& form = {}) {
    return adds_later({.shape = shape, .operand = operand, .form = form, .rows = rows}, machine);
  };
  EXPECT_FALSE(waits(kOut, 16));
  EXPECT_TRUE(waits(kOut, 17));
  EXPECT_TRUE(waits(kDown, 256));
  EXPECT_TRUE(waits(kDown, 384));
  EXPECT_FALSE(waits(kDown, 385));
  EXPECT_FALSE(waits(kOut, 64, kA100));
  EXPECT_TRUE(waits({2560, 1, 9728}, 9));
  EXPECT_FALSE(waits({2560, 1, 9728}, 8));
  EXPECT_TRUE(waits({2560, 1, 9728}, 9, kH200, DType::bf16, {.bits = 8}));
  EXPECT_FALSE(waits({2560, 1, 9728}, 16, kH200, DType::bf16, {.bits = 4, .shift = 2}));
  EXPECT_FALSE(waits({2560, 1, 9728}, 257));
  EXPECT_FALSE(waits(kOut, 64, kH200, DType::f32));
  EXPECT_TRUE(waits({6144, 1, 2048}, 64));
  EXPECT_FALSE(waits({6272, 1, 2048}, 64));  // a row of it does not fit into the block that norms it
}

}  // namespace
}  // namespace shoal::ops::cuda
