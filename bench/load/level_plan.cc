#include "bench/load/level_plan.h"

#include <algorithm>

#include "base/error.h"
#include "bench/measure/draws.h"
#include "bench/measure/load_limits.h"

namespace shoal::load {
namespace {

constexpr double kReadAhead_s = 0.5;
constexpr int kMostUsers = 10'000;

}  // namespace

void LevelPlan::validate() const {
  bench::check_load(*this, kMostUsers);
  if (!(leave_share >= 0 && leave_share <= 1))
    fail(ErrorCode::invalid_argument, "cancel: expected 0% to 100%, got ", leave_share * 100, "%");
  if (!(slow_share >= 0 && slow_share <= 1))
    fail(ErrorCode::invalid_argument, "slow-readers: expected 0% to 100%, got ", slow_share * 100, "%");
}

double leaves_after_s(const LevelPlan& plan, uint64_t index) {
  using bench::Draw, bench::draw_unit;
  if (draw_unit(plan.seed, index, Draw::leave) >= plan.leave_share) return 0;
  return 0.1 + 0.9 * draw_unit(plan.seed, index, Draw::leave_after);
}

bool reads_slowly(const LevelPlan& plan, uint64_t index) {
  using bench::Draw, bench::draw_unit;
  return draw_unit(plan.seed, index, Draw::slow_reader) < plan.slow_share && leaves_after_s(plan, index) == 0;
}

double wait_of_reader_s(double pace, double heard_s, double reading_s) {
  if (pace <= 0) return 0;
  return std::max(0.0, (heard_s - kReadAhead_s) / pace - reading_s);
}

}  // namespace shoal::load
