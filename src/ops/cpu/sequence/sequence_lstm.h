// A step of an LSTM for several states at once.
//
// Bound by the weights: 1 MB a step and direction at 256 units, read in order from L2. They lie in groups of
// 16 units with the four gates side by side, so a group's sums are ready for its cells without a shuffle.
// Each gate is one chain of fma over the hidden values in order that begins with the product of the inputs,
// however many states share the pass.
#pragma once

#include "ops/cpu/rows/vector_rows.h"
#include "ops/cpu/sequence/sequence_math.h"

namespace shoal::ops::cpu {

template <typename V>
struct Lstm {
  using R = Rows<V>;
  // States side by side in registers: 4 x 4 of 32 with AVX-512; AVX2 fills its 16 with one and the weights.
  static constexpr int kTogether = V::kQueries == 8 ? 4 : 1;
  static constexpr int64_t kDepth = 64;  // 16 KB of weights stay in L1 while all states pass over them

  static void step(const LstmStep& s) {
    const int64_t depth = s.count > kTogether ? kDepth : s.hidden;
    for (int64_t unit = 0; unit < s.hidden; unit += kLstmGroup) {
      for (int64_t k = 0; k < s.hidden; k += depth) {
        const int64_t end = s.hidden - k < depth ? s.hidden : k + depth;
        int64_t i = 0;
        for (; i + kTogether <= s.count; i += kTogether) accumulate<kTogether>(s, i, unit, k, end);
        if constexpr (kTogether > 2)
          for (; i + 2 <= s.count; i += 2) accumulate<2>(s, i, unit, k, end);
        for (; i < s.count; ++i) accumulate<1>(s, i, unit, k, end);
      }
      for (int64_t i = 0; i < s.count; ++i) update(s.states[i], s.hidden, unit);
    }
  }

 private:
  static int width(int64_t hidden, int64_t unit) {
    return static_cast<int>(hidden - unit < kLstmGroup ? hidden - unit : kLstmGroup);
  }

  // The gates of a group of units of kStates states from `first` on += their weights times hidden values
  // [begin, end).
  template <int kStates>
  static void accumulate(const LstmStep& s, int64_t first, int64_t unit, int64_t begin, int64_t end) {
    const float* weights = s.recurrent + unit * s.hidden * 4;
    const int count = width(s.hidden, unit);
    const float* before[kStates];
    V sum[kStates][4];
    for (int i = 0; i < kStates; ++i) {
      const LstmState& state = s.states[first + i];
      before[i] = state.before;
      for (int gate = 0; gate < 4; ++gate)
        sum[i][gate] = R::load(state.gates + gate * s.hidden + unit, count);
    }
    for (int64_t k = begin; k < end; ++k) {
      V w[4];
      for (int gate = 0; gate < 4; ++gate) w[gate] = V::load(weights + (k * 4 + gate) * kLstmGroup);
      for (int i = 0; i < kStates; ++i) {
        const V h = V::all(before[i][k]);
        for (int gate = 0; gate < 4; ++gate) sum[i][gate] = V::fma(w[gate], h, sum[i][gate]);
      }
    }
    for (int i = 0; i < kStates; ++i)
      for (int gate = 0; gate < 4; ++gate)
        R::store(sum[i][gate], s.states[first + i].gates + gate * s.hidden + unit, count);
  }

  static void update(const LstmState& state, int64_t hidden, int64_t unit) {
    const int count = width(hidden, unit);
    const float* gates = state.gates + unit;
    const V input = sigmoid(R::load(gates, count)), forget = sigmoid(R::load(gates + hidden, count));
    const V candidate = cpu::tanh(R::load(gates + 2 * hidden, count));
    const V output = sigmoid(R::load(gates + 3 * hidden, count));
    const V cell = V::fma(forget, R::load(state.cells + unit, count), input * candidate);
    R::store(cell, state.cells + unit, count);
    R::store(output * cpu::tanh(cell), state.after + unit, count);
  }
};

}  // namespace shoal::ops::cpu
