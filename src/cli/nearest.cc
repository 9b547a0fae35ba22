#include "cli/nearest.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace shoal::cli {
namespace {

constexpr size_t kLongestName = 64;  // what is longer is no misspelling, and costs a square of time
constexpr size_t kShortestBeginning = 3;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// How many letters may differ.
size_t allowance(size_t letters) { return std::max<size_t>(1, letters / 3); }

bool is_beginning(std::string_view shorter, std::string_view longer) {
  return shorter.size() >= kShortestBeginning && longer.starts_with(shorter);
}

}  // namespace

size_t spelling_distance(std::string_view a, std::string_view b) {
  // Rows of the table: two letters of `a` ago, one ago, now.
  std::vector<size_t> older(b.size() + 1), old(b.size() + 1), now(b.size() + 1);
  std::iota(old.begin(), old.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({old[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], older[j - 2] + 1);
    }
    older.swap(old);
    old.swap(now);
  }
  return old[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return "";
  const std::string wanted = lower(name);
  std::string best, begins;
  size_t least = std::string::npos;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::string offered = lower(candidate);
    const size_t distance = spelling_distance(wanted, offered);
    if (distance <= allowance(std::min(wanted.size(), offered.size())) && distance < least) {
      best = candidate;
      least = distance;
    }
    if (begins.empty() && (is_beginning(wanted, offered) || is_beginning(offered, wanted)))
      begins = candidate;
  }
  return best.empty() ? begins : best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view quote) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : concat("; did you mean ", quote, nearest, quote, "?");
}

}  // namespace shoal::cli
