#include "ops/conv1d_testing.h"
#include "ops/step_graph.h"
#include "ops/transfer.h"

namespace shoal::ops {
namespace {

TEST_P(Conv1d, MatchesTheReference) {
  for (const Geometry g : kGeometries) {
    const Layer layer = random_layer(g);
    for (const int64_t rows : {1, 5, 70, 200}) {
      if (rows == 200 && !on_gpu()) continue;  // a block of a CPU has far fewer
      SCOPED_TRACE(testing::Message() << g << ", " << rows << " rows");
      const std::vector<float> x = random_values(rows * g.inputs, 14);
      expect_close(run_alone(layer, x), expected(layer, narrow(x)), bound(layer, narrow(x)));
    }
  }
}

TEST_P(Conv1d, SnakesItsInput) {
  // f32 sine, square and quotient. Where a GPU rounds the result to 16 bits next, its sine is 2^-20.5 + 2^-23
  // |alpha x| off, and counts twice.
  const int units = on_gpu() && dtype() != DType::f32 ? 32 : 8;
  for (const Geometry g : {Geometry{33, 17, 3, 2}, {64, 1, 7, 1}, {40, 24, 7, 9}, {64, 40, 1, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g, /*snakes=*/true);
    const std::vector<float> x = random_values(100 * g.inputs, 14);
    ref::Values snaked, error, history_bound;
    for (size_t i = 0; i < x.size(); ++i) {
      const double alpha = layer.alpha[i % layer.alpha.size()];
      snaked.push_back(ref::snake(x[i], alpha));
      error.push_back(units * kUnit * (std::abs(x[i]) + 1.0 / alpha));
      if (i >= x.size() - static_cast<size_t>(layer.look_back() * g.inputs))
        history_bound.push_back(error.back());
      // The rounding itself: a value near a tie may go either way.
      if (dtype() != DType::f32) error.back() += 2 * unit_of(dtype()) * std::abs(snaked.back());
    }
    const ref::Kernel no_bias{magnitudes(layer.kernel.weight), {}, g.outputs, g.inputs, g.taps};
    ref::Values allowed = bound(layer, snaked);
    const ref::Values from_input = ref::causal_conv1d(error, no_bias, 1, g.dilation);
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] += from_input[i];
    Rows histories;
    expect_close(run(layer, {x}, histories)[0], expected(layer, snaked), allowed);
    // The history holds the inputs after the snake, not yet rounded.
    const ref::Values last(snaked.end() - layer.look_back() * g.inputs, snaked.end());
    if (!last.empty()) expect_close(histories[0], last, history_bound);
  }
}

TEST_P(Conv1d, SnakingInsideEqualsSnakingBefore) {
  if (on_gpu() && dtype() != DType::f32) GTEST_SKIP() << "what a GPU rounds to 16 bits has another kernel";
  for (const Geometry g : {Geometry{40, 16, 3, 1}, {32, 1, 7, 1}}) {
    Layer layer = random_layer(g, /*snakes=*/true);
    const std::vector<float> x = random_values(50 * g.inputs, 17);
    const std::vector<float> inside = run_alone(layer, x);
    const Tensor before = put(x, {50, g.inputs}), snaked = garbage({50, g.inputs});
    snake(ctx(), before, layer.placed_alpha, snaked);
    layer.alpha.clear();
    expect_same_bits(inside, run_alone(layer, get(snaked)));
  }
}

TEST_P(Conv1d, ChunksOfAnySizeEqualOneShot) {
  std::mt19937 generator(15);
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g, /*snakes=*/g.taps == 7);
    const int64_t rows = 170;
    const std::vector<float> x = random_values(rows * g.inputs, 16);
    Rows whole_history, history;
    const std::vector<float> whole = run(layer, {x}, whole_history)[0];
    std::vector<float> pieces;
    for (int64_t begin = 0; begin < rows;) {
      const int64_t most = std::uniform_int_distribution<int64_t>(0, 1)(generator) ? 2 : 90;
      const int64_t end = std::min(rows, begin + std::uniform_int_distribution<int64_t>(0, most)(generator));
      append(pieces, run(layer, {rows_of(x, g.inputs, begin, end)}, history, kUnaligned)[0]);
      begin = end;
    }
    expect_same_bits(pieces, whole);
    expect_same_bits(history[0], whole_history[0]);
  }
}

TEST_P(Conv1d, ASequenceIsTheSameAloneAndInARaggedBatch) {
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{0, 1, 5, 0, 3, 1},
                                             std::vector<int64_t>(9, 1),
                                             std::vector<int64_t>(40, 1),
                                             {40, 0, 100, 1, 67},
                                             {0, 300},
                                             {129, 0, 0, 128, 1}})
    for (const Geometry g :
         {Geometry{20, 16, 7, 9}, {65, 30, 3, 1}, {1, 24, 7, 1}, {64, 48, 1, 1}, {32, 1, 7, 1}}) {
      const bool snakes = on_gpu() ? g.inputs != 20 : g.inputs == 65 || g.inputs == 32;
      const Layer layer = random_layer(g, snakes);
      Rows first, second, histories;
      for (size_t s = 0; s < counts.size(); ++s) {
        first.push_back(random_values(counts[s] * g.inputs, static_cast<unsigned>(20 + s)));
        second.push_back(
            random_values(counts[counts.size() - 1 - s] * g.inputs, static_cast<unsigned>(90 + s)));
      }
      const Rows y_first = run(layer, first, histories), y_second = run(layer, second, histories);
      for (size_t s = 0; s < counts.size(); ++s) {
        SCOPED_TRACE(testing::Message() << "sequence " << s << " of " << counts.size() << ", " << g);
        Rows alone;
        expect_same_bits(y_first[s], run(layer, {first[s]}, alone)[0]);
        expect_same_bits(y_second[s], run(layer, {second[s]}, alone)[0]);
        expect_same_bits(histories[s], alone[0]);
      }
    }
}

TEST_P(Conv1d, OffsetsCountRowsAtTheLowerRate) {
  for (const Geometry g : {Geometry{20, 16, 7, 3}, {32, 1, 7, 1}, {1, 24, 7, 1}}) {
    const Layer layer = random_layer(g, /*snakes=*/true);
    Rows xs, histories, histories_at_rate;
    for (const int64_t count : {8, 0, 24, 4})
      xs.push_back(random_values(count * g.inputs, static_cast<unsigned>(count + 1)));
    const Rows want = run(layer, xs, histories), got = run(layer, xs, histories_at_rate, kAligned, 4);
    for (size_t s = 0; s < xs.size(); ++s) {
      expect_same_bits(got[s], want[s]);
      expect_same_bits(histories_at_rate[s], histories[s]);
    }
  }
}

TEST_P(Conv1d, ANaNStaysInItsSequence) {
  for (const Geometry g : {Geometry{20, 16, 7, 1}, {32, 1, 7, 1}}) {
    const Layer layer = random_layer(g);
    Rows xs = {random_values(9 * g.inputs, 1), random_values(9 * g.inputs, 2)}, histories;
    const Rows clean = run(layer, xs, histories);
    std::fill(xs[0].begin(), xs[0].end(), NAN);
    histories.clear();
    const Rows got = run(layer, xs, histories);
    EXPECT_TRUE(std::isnan(got[0][0]));
    expect_same_bits(got[1], clean[1]);
  }
}

TEST_P(Conv1d, Epilogues) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {32, 1, 7, 1}, {1, 24, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const std::vector<float> x = random_values(30 * g.inputs, 3), plain = run_alone(layer, x);
    const std::vector<float> curved = run_alone(layer, x, {.activation = Activation::tanh});
    for (size_t i = 0; i < plain.size(); ++i)  // tanhf: 2 ulp
      EXPECT_NEAR(curved[i], std::tanh(static_cast<double>(plain[i])), 4 * kUnit);
  }
}

TEST_P(Conv1d, AddsToTheResidualStream) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {32, 1, 7, 1}, {1, 24, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const std::vector<float> x = random_values(30 * g.inputs, 3), scale = random_values(g.outputs, 4),
                             plain = run_alone(layer, x), before = random_values(30 * g.outputs, 5);
    std::vector<float> want;
    for (size_t i = 0; i < before.size(); ++i) want.push_back(before[i] + plain[i] * scale[i % scale.size()]);
    Rows histories;
    const Sequences s = place({x}, histories, g.inputs, layer.look_back());
    const Tensor y = put(before, {30, g.outputs}), placed_scale = put(scale, {g.outputs});
    causal_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, layer.weight, g.dilation, y,
                  {.accumulate = true, .scale = placed_scale});
    expect_same_bits(get(y), want);
  }
}

TEST_P(Conv1d, WritesAndAddsToStridedRows) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {1, 24, 7, 1}, {128, 100, 7, 3}, {32, 1, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const std::vector<float> x = random_values(150 * g.inputs, 3), plain = run_alone(layer, x);
    expect_strided(g.outputs, plain, [&](TensorView y, const Epilogue& epilogue) {
      Rows histories;
      const Sequences s = place({x}, histories, g.inputs, layer.look_back());
      causal_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, layer.weight, g.dilation, y, epilogue);
      synchronize(ctx());
    });
  }
}

struct Resampling {
  int64_t inputs, outputs, size, stride;
};

std::ostream& operator<<(std::ostream& out, const Resampling& c) {
  return out << c.inputs << " -> " << c.outputs << " k" << c.size << " s" << c.stride;
}

// Strided: rows [frames, in] are read as [frames / s, s * in].
TEST_P(Conv1d, StridedMatchesTheReference) {
  for (const Resampling c : {Resampling{1, 8, 2, 2},
                             {3, 20, 4, 2},
                             {24, 18, 16, 8},
                             {32, 40, 8, 4},
                             {10, 5, 9, 3},
                             {10, 12, 8, 4}}) {
    SCOPED_TRACE(testing::Message() << c);
    std::vector<float> w = random_values(c.inputs * c.outputs * c.size, 21, 0.3f),
                       bias = random_values(c.outputs, 22);
    const std::vector<float> x = random_values(40 * c.stride * c.inputs, 23);
    const Layer layer{{c.stride * c.inputs, c.outputs, c.size / c.stride, 1},
                      pack_strided_conv1d(ctx(), view_of(w, {c.outputs, c.inputs, c.size}),
                                          view_of(bias, {c.outputs}), c.stride, dtype()),
                      {narrow(w), wide(bias), c.outputs, c.inputs, c.size},
                      {},
                      {}};
    const ref::Values magnitude =
        ref::causal_conv1d(magnitudes(narrow(x)), magnitudes_of(layer.kernel), c.stride, 1);
    expect_close(run_alone(layer, x), ref::causal_conv1d(narrow(x), layer.kernel, c.stride, 1),
                 bound_of(magnitude, c.stride * c.inputs, c.size / c.stride));
  }
}

// Transposed: the result [frames, s * out] is the memory of [frames * s, out].
TEST_P(Conv1d, TransposedMatchesTheReference) {
  for (const Resampling c : {Resampling{5, 1, 4, 2},
                             {20, 3, 2, 2},
                             {32, 24, 16, 8},
                             {70, 12, 8, 4},
                             {9, 5, 9, 3},
                             {10, 12, 8, 4}}) {
    SCOPED_TRACE(testing::Message() << c);
    std::vector<float> w = random_values(c.inputs * c.outputs * c.size, 31, 0.3f),
                       bias = random_values(c.outputs, 32);
    const std::vector<float> x = random_values(37 * c.inputs, 33);
    const Layer layer{{c.inputs, c.stride * c.outputs, c.size / c.stride, 1},
                      pack_transposed_conv1d(ctx(), view_of(w, {c.inputs, c.outputs, c.size}),
                                             view_of(bias, {c.outputs}), c.stride, dtype()),
                      {narrow(w), wide(bias), c.inputs, c.outputs, c.size},
                      {},
                      {}};
    const ref::Values magnitude =
        ref::causal_conv_transpose1d(magnitudes(narrow(x)), magnitudes_of(layer.kernel), c.stride);
    expect_close(run_alone(layer, x), ref::causal_conv_transpose1d(narrow(x), layer.kernel, c.stride),
                 bound_of(magnitude, c.inputs, c.size / c.stride));
  }
}

// A recorded step is replayed on its current offsets, slots and rows.
TEST_P(Conv1d, ReplaysReadTheCurrentContentsOfMemory) {
  StepGraphs graphs;
  ctx().graphs = &graphs;
  const Geometry g{40, 24, 7, 3};
  const Layer layer = random_layer(g, /*snakes=*/true);
  Rows none;
  const std::vector<float> x = random_values(20 * g.inputs, 6);
  Sequences s = place({x, {}}, none, g.inputs, layer.look_back());
  const Tensor y = garbage({20, g.outputs});
  Rows histories;
  for (int32_t i = 0; i < 5; ++i) {
    s.host_offsets = {0, 3 * i, 20};
    const Rows xs = {rows_of(x, g.inputs, 0, 3 * i), rows_of(x, g.inputs, 3 * i, 20)};
    copy(put(s.host_offsets, {3}), s.offsets);
    run_step(ctx(), {.owner = this, .rows = 20, .sequences = 2}, [&] {
      causal_conv1d(ctx(), {s.x, s.rows(), s.history(), layer.snake()}, layer.weight, g.dilation, y);
    });
    const Rows want = run(layer, xs, histories);
    std::vector<float> all = want[0];
    append(all, want[1]);
    expect_same_bits(get(y), all);
  }
  EXPECT_EQ(graphs.count(), on_gpu() ? 1 : 0);
  ctx().graphs = nullptr;
}

TEST_P(Conv1d, MismatchedShapesAreOurFault) {
  const Layer layer = random_layer({8, 4, 3, 2});
  const std::vector<int32_t> offsets = {0, 10}, falling = {0, 12, 10}, two = {0, 4, 10}, first = {0},
                             last = {2}, beyond = {3}, negative = {-1}, both = {2, 0}, twice = {1, 1}, none;
  const Tensor in = garbage({10, 8}), out = garbage({10, 4}), pool = garbage({3, 40});
  const TensorView wide_pool = pool;
  std::deque<Tensor> placed;  // as long as kernels may read them
  const auto there = [&](const std::vector<int32_t>& values) {
    return placed.emplace_back(put(values, {std::ssize(values)})).view();
  };
  const auto run = [&](TensorView from, const std::vector<int32_t>& rows, TensorView kept, int64_t offset,
                       const std::vector<int32_t>& slots) {
    causal_conv1d(ctx(), {from, {{rows}, there(rows), there(slots)}, {kept, offset, slots}, {}}, layer.weight,
                  2, out);
  };
  EXPECT_NO_THROW(run(in, offsets, pool, 0, first));
  EXPECT_NO_THROW(run(in, offsets, pool, 8, last));
  EXPECT_NO_THROW(run(in, two, pool, 0, both));
  EXPECT_THROW(run(in, offsets, pool, 9, first), Error);
  EXPECT_THROW(run(in, offsets, pool, -1, first), Error);
  EXPECT_THROW(run(in, offsets, pool, 0, none), Error);
  EXPECT_THROW(run(in, offsets, pool, 0, both), Error);
  if (!on_gpu()) {  // whose slots the host does not read
    EXPECT_THROW(run(in, offsets, pool, 0, beyond), Error);
    EXPECT_THROW(run(in, offsets, pool, 0, negative), Error);
    EXPECT_THROW(run(in, two, pool, 0, twice), Error);
  }
  EXPECT_THROW(run(in, offsets, wide_pool.columns(0, 36), 0, first), Error);
  EXPECT_THROW(run(in, offsets, {}, 0, first), Error);
  EXPECT_THROW(run(in, falling, pool, 0, both), Error);
  EXPECT_THROW(run(out, offsets, pool, 0, first), Error);
  ConvInput good{in, {{offsets}, there(offsets), there(first)}, {pool, 0, first}, {}};
  EXPECT_THROW(causal_conv1d(ctx(), good, layer.weight, 0, out), Error);
  EXPECT_THROW(causal_conv1d(ctx(), good, layer.weight, 3, out), Error);
  EXPECT_THROW(causal_conv1d(ctx(), good, layer.weight, 2, in), Error);
  good.snake_alpha = out;
  EXPECT_THROW(causal_conv1d(ctx(), good, layer.weight, 2, out), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, Conv1d, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

class Conv1dOnCpus : public Conv1d {};

TEST_P(Conv1dOnCpus, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
  if (dtype() == DType::bf16 && GetParam().machine.isa == CpuIsa::avx512_bf16)
    GTEST_SKIP() << "VDPBF16PS has its own order";
  for (const Geometry g : kGeometries) {
    const Layer layer = random_layer(g, /*snakes=*/g.inputs == 33);
    const std::vector<float> x = random_values(50 * g.inputs, 14);
    set_cpu_isa(*GetParam().machine.isa);
    const std::vector<float> got = run_alone(layer, x);
    set_cpu_isa(CpuIsa::portable);
    expect_same_bits(got, run_alone(layer, x));
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv1dOnCpus, testing::ValuesIn(products_on(every_product_cpu())),
                         name_of_product);

}  // namespace
}  // namespace shoal::ops
