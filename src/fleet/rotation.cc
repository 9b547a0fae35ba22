#include "fleet/rotation.h"

#include "base/log.h"

namespace shoal::fleet {

bool Rotation::is_drained(const std::string& worker) const {
  const auto wish = wishes_.find(worker);
  return wish != wishes_.end() && wish->second.drained;
}

void Rotation::leaves(const std::string& worker) {
  wishes_[worker].leaves = true;
  update(worker, false);
}

void Rotation::update(const std::string& worker, bool is_ready) {
  const auto found = wishes_.find(worker);
  if (found == wishes_.end()) return;
  Wish& wish = found->second;
  if (is_ready && wish.was_away) wish.leaves = false;
  wish.was_away = !is_ready;
  const bool out = wish.drained || wish.leaves;
  if (out != wish.told_out && (out || is_ready)) say(worker, wish, !out);
}

void Rotation::confirm(const std::string& worker) {
  Wish& wish = wishes_[worker];
  if (!wish.drained && !wish.leaves) say(worker, wish, true);
}

void Rotation::balancer_started() {
  for (auto& [name, wish] : wishes_) wish.told_out = false;
}

void Rotation::say(const std::string& worker, Wish& wish, bool in) {
  if (!tell_ || tell_(worker, in)) {
    wish.told_out = !in;
    wish.is_lost = false;
    return;
  }
  if (!wish.is_lost)
    log(LogLevel::warning, "the balancer was not told that ", worker, in ? " is back" : " leaves");
  wish.is_lost = true;
}

}  // namespace shoal::fleet
